"""Whether the rows that meet in a node come from the same rows, and whether each group stays among siblings.

Equally many rows for each sample are not enough: four answers to each prompt and two others to each prompt
divide, but no answer of the four is the parent of one of the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from flowsched.errors import Problem
from flowsched.graph import Node

MOST_ROWS = 2**62  # sums of two row numbers still fit the table's columns


@dataclass(frozen=True)
class _Stage:
    """One generation of a row's ancestors: who made them, and how many there are for each sample."""

    maker: str
    per_sample: Fraction


_Ancestry = tuple[_Stage, ...]
"""From the samples down to the rows themselves, which are the last stage."""


def find_ancestry_problems(sources: Iterable[str], nodes: Iterable[Node]) -> Iterator[tuple[str, Problem]]:
    """Yield the names of nodes that no number of samples can be planned for, and why; none that read those.

    Args:
        sources: names of the sources.
        nodes: the nodes, each after those that it reads.
    """
    known: dict[str, _Ancestry] = {name: (_Stage("", Fraction(1)),) for name in sources}
    for node in nodes:
        if not all(name in known for name in node.inputs):
            continue
        finest = max((known[name] for name in node.inputs), key=lambda own: (own[-1].per_sample, len(own)))
        strangers = [name for name in node.inputs if not _stands_above(known[name], finest)]
        cut = [rows for rows in (node.collapse, node.group) if not _are_siblings(finest, rows)]
        each = finest[-1].per_sample
        if strangers:
            message = (
                f"its {each} rows for each sample do not come from the rows of {strangers[0]!r} one by one"
            )
            mend = "Collapse one of its inputs, or expand both alike"
            yield node.name, Problem("alignment", f"node {node.name!r}", message, mend)
        elif cut:
            message = f"{cut[0]} of its rows ({each} for each sample) are no whole siblings of one another"
            mend = "Give a divisor of the rows that come from one row, or a multiple of them"
            yield node.name, Problem("group", f"node {node.name!r}", message, mend)
        else:
            made = _collapsed(finest, node.collapse)
            if node.expand > 1:
                made = (*made, _Stage(node.name, made[-1].per_sample * node.expand))
            if made[-1].per_sample > MOST_ROWS:
                message = f"it makes {made[-1].per_sample} rows for each sample, more than can be counted"
                mend = f"Stay below {MOST_ROWS} rows"
                yield node.name, Problem("table", f"node {node.name!r}", message, mend)
            else:
                known[node.name] = made


def _stands_above(ancestry: _Ancestry, finest: _Ancestry) -> bool:
    """Whether each row of ``finest`` has one row of ``ancestry`` as its equal or its ancestor."""
    *above, own = ancestry
    if own.per_sample == finest[-1].per_sample:
        return True
    if len(ancestry) > len(finest) or tuple(above) != finest[: len(above)]:
        return False
    same = finest[len(above)]
    return same.maker == own.maker and same.per_sample % own.per_sample == 0


def _are_siblings(ancestry: _Ancestry, rows: int) -> bool:
    """Whether every ``rows`` rows are all the descendants of some ancestors, or divide those of one evenly."""
    left = ancestry[-1].per_sample / rows
    return all(stage.per_sample % left == 0 or left % stage.per_sample == 0 for stage in ancestry)


def _collapsed(ancestry: _Ancestry, rows: int) -> _Ancestry:
    """Return the ancestry of the rows that every ``rows`` siblings become."""
    left = ancestry[-1].per_sample / rows
    kept = tuple(stage for stage in ancestry if stage.per_sample <= left)
    if kept and kept[-1].per_sample == left:
        return kept
    return (*kept, _Stage(ancestry[len(kept)].maker, left))
