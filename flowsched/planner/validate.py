"""Pass 0, validate: whether the graph can be planned for this number of samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flowsched.errors import PlanError, Problem
from flowsched.graph import Graph
from flowsched.graph.fields import say_value
from flowsched.graph.rows import NodeRows, find_rows

MOST_CALLS = 2**31 - 1
"""The most calls of a plan: what the columns of its table can number."""


def validate_sizes(graph: Graph, samples: int) -> Mapping[str, NodeRows]:
    """Return the rows of every node for ``samples`` samples.

    Raises:
        PlanError: samples is no whole number of 0 or more, sizes cannot meet or be cut, or a node has more than
            2**62 rows.
    """
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < 0:
        mend = "Give the number of rows of the step's input, a whole number of 0 or more"
        problem = Problem("bad-samples", "samples", f"samples is {say_value(samples)}", mend)
        raise PlanError(_say_subject(graph, samples), [problem])
    rows, problems = find_rows(graph, samples)
    if problems:
        raise PlanError(_say_subject(graph, samples), problems)
    return rows


def validate_calls(graph: Graph, samples: int, counts: Sequence[int]) -> None:
    """Verify, before any memory is taken for them, that the calls can be numbered.

    Args:
        graph: the graph.
        samples: samples of the step.
        counts: calls of each node.

    Raises:
        PlanError: there are more than 2**31 - 1 calls; it names the node with the most.
    """
    total = sum(counts)
    if total > MOST_CALLS:
        most = max(range(len(counts)), key=counts.__getitem__)
        node = graph.nodes[most]
        message = f"{counts[most]} of the {total} calls of the plan are its, but a plan holds {MOST_CALLS}"
        mend = f"Give a batch_size above {node.batch_size}, or run several steps of fewer samples each"
        problem = Problem("too-many-calls", f"node {node.name!r}", message, mend)
        raise PlanError(_say_subject(graph, samples), [problem])


def _say_subject(graph: Graph, samples: object) -> str:
    said, _, _ = say_value(samples).rpartition(" (")
    return f"graph {graph.name!r} with {said} samples"
