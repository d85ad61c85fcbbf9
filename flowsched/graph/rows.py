"""How many rows each node reads and makes for one sample, and how inputs of different sizes meet.

A sample may stand for several rows (``expand``) and several rows may become one (``collapse``). The rows of
a stream are nested: first by sample, then by the node that expanded them. Two streams meet row by row where
they have equally many rows, or where the rows of one are the parents of the rows of the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from flowsched.errors import Problem
from flowsched.graph.declaration import Graph, Node
from flowsched.graph.topology import topological_order


@dataclass(frozen=True)
class NodeRows:
    """Rows of one node.

    Attributes:
        read: rows read for each sample (below 1 where several samples became one row).
        made: rows made for each sample.
        times: for each input, how many of the rows read share one row of that input.
        merged: samples that became one before they were expanded into the rows read; 1 where none did.
    """

    read: Fraction
    made: Fraction
    times: tuple[int, ...]
    merged: int = 1

    @property
    def siblings(self) -> int:
        """Rows read that come from the same ``merged`` samples."""
        return int(self.read * self.merged)

    def samples_of(self, start: int, stop: int) -> tuple[int, int]:
        """Return the half-open range of sample ids of the rows ``[start, stop)`` read, at least one."""
        siblings = self.siblings
        return start // siblings * self.merged, ((stop - 1) // siblings + 1) * self.merged


@dataclass(frozen=True)
class _Level:
    """Rows that one origin (the samples, or an expanding node) makes inside each row of the level above."""

    origin: str
    rows: Fraction


MOST_ROWS = 2**62
"""The most rows that a node may read or make: the sum of two row numbers still fits the columns of a plan."""

_Lineage = tuple[_Level, ...]
_PURPOSES = {"collapse": "collapses {} rows into one", "group": "keeps {} rows in one call"}


def find_rows(graph: Graph, samples: int) -> tuple[Mapping[str, NodeRows], list[Problem]]:
    """Return the rows of every node, and the problems of sizes that cannot meet or be cut.

    Nodes downstream of a problem are left out, so that one fault is reported once.
    """
    lineages: dict[str, _Lineage] = {name: (_Level("", Fraction(1)),) for name in graph.sources}
    found: dict[str, NodeRows] = {}
    problems: list[Problem] = []
    if samples > MOST_ROWS:
        message = f"the sources have {_say_rows(samples)} rows"
        return {}, [Problem("too-many-rows", "samples", message, f"Give {MOST_ROWS} samples or fewer")]
    for index in topological_order(graph):
        node = graph.nodes[index]
        if any(name not in lineages for name in node.inputs):
            continue
        finest = max(
            (lineages[name] for name in node.inputs), key=lambda lineage: (_size(lineage), len(lineage))
        )
        merged = _merge(finest, node.collapse)
        node_problems = _problems_of(node, lineages, finest, samples)
        problems += node_problems
        if node_problems or merged is None:
            continue
        expanded = (_Level(node.name, Fraction(node.expand)),) if node.expand > 1 else ()
        made = lineages[node.name] = merged + expanded
        times = tuple(int(_size(finest) / _size(lineages[name])) for name in node.inputs)
        found[node.name] = NodeRows(_size(finest), _size(made), times, finest[0].rows.denominator)
    return found, problems


def _problems_of(
    node: Node, lineages: Mapping[str, _Lineage], finest: _Lineage, samples: int
) -> list[Problem]:
    place = f"node {node.name!r}"
    for name in node.inputs:
        if not _meets(lineages[name], finest):
            widest = next(other for other in node.inputs if lineages[other] == finest)
            message = (
                f"its inputs {widest!r} with {_say(finest, samples)} and {name!r} with "
                f"{_say(lineages[name], samples)} cannot meet row by row"
            )
            mend = "Collapse one of them, or give both the same expand"
            return [Problem("sizes-cannot-meet", place, message, mend)]
    for word, count in ("collapse", node.collapse), ("group", node.group):
        if _merge(finest, count) is None:
            message = f"it {_PURPOSES[word].format(count)}, but reads {_say(finest, samples)}"
            mend = f"Give {word} as a divisor of the rows that come from one row, or as a multiple of them"
            return [Problem("sizes-cannot-meet", place, message, mend)]
    rows = _size(finest) * samples
    if rows % node.unit:
        word = "collapse" if node.collapse == node.unit else "group"
        message = f"{rows} rows are no whole number of {word}s of {node.unit}"
        mend = f"Give a number of samples that makes the rows a multiple of {node.unit}, or another {word}"
        return [Problem("sizes-cannot-meet", place, message, mend)]
    made = rows * node.expand / node.collapse
    if made > MOST_ROWS or _size(finest) * node.expand / node.collapse > MOST_ROWS:
        message = f"it makes {_say_rows(made)} rows of {rows}"
        mend = f"Give fewer samples, or a smaller expand: a plan can count {MOST_ROWS} rows"
        return [Problem("too-many-rows", place, message, mend)]
    return []


def _say_rows(rows: int | Fraction) -> str:
    return str(rows) if rows < MOST_ROWS**2 else f"more than {MOST_ROWS**2}"


def _size(lineage: _Lineage) -> Fraction:
    size = Fraction(1)
    for level in lineage:
        size *= level.rows
    return size


def _say(lineage: _Lineage, samples: int) -> str:
    return f"{_size(lineage) * samples} rows ({_size(lineage)} per sample)"


def _meets(coarse: _Lineage, fine: _Lineage) -> bool:
    """Whether each row of ``fine`` has one row of ``coarse`` that is its equal or its parent."""
    if _size(coarse) == _size(fine):
        return True
    *outer, last = coarse
    if len(coarse) > len(fine) or tuple(outer) != fine[: len(outer)]:
        return False
    twin = fine[len(outer)]
    return twin.origin == last.origin and (twin.rows / last.rows).denominator == 1


def _merge(lineage: _Lineage, rows: int) -> _Lineage | None:
    """Return the lineage after every ``rows`` rows became one; None where they would not be whole siblings."""
    levels = list(lineage)
    left = rows
    while left > 1:
        last = levels.pop()
        if not levels:
            levels.append(_Level(last.origin, last.rows / left))
            break
        if left % last.rows == 0:
            left //= int(last.rows)
        elif last.rows % left == 0:
            levels.append(_Level(last.origin, last.rows / left))
            break
        else:
            return None
    return tuple(levels)
