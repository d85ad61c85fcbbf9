"""Which rows of each node carry a sample?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from flowsched.graph.topology import topological_order
from flowsched.plan import Plan


@dataclass(frozen=True)
class Passage:
    """A sample's passage through one node.

    Attributes:
        node: name of the node.
        reads: half-open range of the rows that carry the sample into the node.
        makes: half-open range of the rows that the node makes of them.
        calls: numbers of the calls that read them.
    """

    node: str
    reads: tuple[int, int]
    makes: tuple[int, int]
    calls: range


def follow_sample(plan: Plan, sample: int) -> dict[str, Passage]:
    """Return the passage of a sample through each node, producers first.

    Where several samples become one row, the sample is followed into all that is made of that row.
    """
    passages: dict[str, Passage] = {}
    for index in topological_order(plan.graph):
        node = plan.graph.nodes[index]
        carried = [rows_carrying(passages, name, sample) for name in node.inputs]
        times = plan.rows[node.name].times
        start = min(rows[0] * factor for rows, factor in zip(carried, times, strict=True))
        stop = max(rows[1] * factor for rows, factor in zip(carried, times, strict=True))
        makes = start // node.collapse * node.expand, -(-stop // node.collapse) * node.expand
        passages[node.name] = Passage(
            node.name, (start, stop), makes, _calls_reading(plan, index, start, stop)
        )
    return passages


def rows_carrying(passages: Mapping[str, Passage], producer: str, sample: int) -> tuple[int, int]:
    """Return the half-open range of the rows made by a node, or of a source, that carry the sample."""
    return passages[producer].makes if producer in passages else (sample, sample + 1)


def _calls_reading(plan: Plan, index: int, start: int, stop: int) -> range:
    """Return the numbers of the node's calls that read any of these rows."""
    first, last = (int(at) for at in plan.call_offsets[index : index + 2])
    own = slice(first, last)
    opening = first + int(np.searchsorted(plan.table.stop[own], start, side="right"))
    closing = first + int(np.searchsorted(plan.table.start[own], stop, side="left"))
    return range(opening, closing)
