"""Random graphs that can be planned, for properties of the planner and of running.

Graphs are valid by construction: inputs are chosen among the streams whose rows meet, groups and collapses
among the numbers that divide the rows. They shrink towards one source and one plain node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from flowsched import Graph, Node

_FACTORS = (2, 3, 4, 5, 6)


class Workload(NamedTuple):
    """A graph, and a number of samples that it can be planned for."""

    graph: Graph
    samples: int


@dataclass(frozen=True)
class Limits:
    """How large a drawn workload may be.

    Attributes:
        nodes: nodes of the graph.
        samples: samples of the step.
        rows: rows that any node reads or makes.
        replicas: replicas of a node.
        batch_size: batch size of a node.
    """

    nodes: int = 12
    samples: int = 5_000
    rows: int = 20_000
    replicas: int = 40
    batch_size: int = 100


def graphs(
    *,
    max_nodes: int = 12,
    max_samples: int = 5_000,
    max_rows: int = 20_000,
    max_replicas: int = 40,
    max_batch_size: int = 100,
) -> SearchStrategy[Workload]:
    """Return a strategy for workloads: chains, joins, diamonds, several sources, all of the node's options."""
    return _workloads(Limits(max_nodes, max_samples, max_rows, max_replicas, max_batch_size))


@dataclass(frozen=True)
class _Stream:
    """What a source or node makes, as the levels of its rows: first by sample, then by who expanded them.

    Attributes:
        name: name of the source or node.
        levels: origin of each level and its rows inside one row of the level above.
    """

    name: str
    levels: tuple[tuple[str, Fraction], ...]

    @property
    def per_sample(self) -> Fraction:
        """Rows for each sample."""
        return prod((rows for _, rows in self.levels), start=Fraction(1))


@st.composite
def _workloads(draw: DrawFn, limits: Limits) -> Workload:
    samples = draw(_sample_counts(limits.samples))
    sources = [f"source{i}" for i in range(draw(st.integers(1, 3)))]
    streams = [_Stream(name, (("", Fraction(1)),)) for name in sources]
    nodes: list[Node] = []
    for _ in range(draw(st.integers(1, limits.nodes))):
        node, stream = draw(_nodes(nodes, streams, samples, limits))
        nodes.append(node)
        streams.append(stream)
    names = [node.name for node in nodes]
    outputs = draw(st.none() | st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    declared = draw(st.just(nodes) | st.permutations(nodes))
    return Workload(Graph("drawn", sources=sources, nodes=declared, outputs=outputs), samples)


def _sample_counts(most: int) -> SearchStrategy[int]:
    """Numbers of samples, among them many that groups divide."""
    grouped = st.builds(
        lambda groups, size: groups * size, st.integers(0, most // 12), st.sampled_from([2, 6, 12])
    )
    return st.integers(0, min(most, 50)) | grouped | st.integers(0, most)


@st.composite
def _nodes(
    draw: DrawFn, nodes: Sequence[Node], streams: Sequence[_Stream], samples: int, limits: Limits
) -> tuple[Node, _Stream]:
    """One more node that reads some of the streams, and the stream that it makes."""
    inputs = draw(_inputs(streams))
    read = _finest(inputs)
    rows = int(read.per_sample * samples)
    name = f"node{len(nodes)}"
    shape = draw(_shapes(read, rows, limits))
    collapse, expand = shape.get("collapse", 1), shape.get("expand", 1)
    levels = _collapsed(read.levels, Fraction(collapse))
    assert levels is not None
    made = _Stream(name, (*levels, (name, Fraction(expand))) if expand > 1 else levels)
    unit = max(collapse, shape.get("group", 1))
    sizes = st.integers(unit, max(unit, limits.batch_size))
    node = Node(
        name,
        inputs=[stream.name for stream in inputs],
        batch_size=draw(st.none() | sizes),
        after=draw(st.just([]) | _subsets([other.name for other in nodes], most=2)),
        **shape,
        **draw(_replicas(nodes, limits)),
    )
    return node, made


@st.composite
def _inputs(draw: DrawFn, streams: Sequence[_Stream]) -> list[_Stream]:
    """One to four streams, the later ones more often, whose rows meet."""
    chosen: list[_Stream] = []
    for _ in range(draw(st.sampled_from([1, 1, 2, 2, 3, 4]))):
        left = [stream for stream in reversed(streams) if stream not in chosen]
        fitting = [stream for stream in left if _can_meet([*chosen, stream])]
        if fitting:
            chosen.append(draw(st.sampled_from(fitting)))
    return chosen


@st.composite
def _shapes(draw: DrawFn, read: _Stream, rows: int, limits: Limits) -> dict[str, Any]:
    """What a node does with its rows: mostly nothing, or some of expand, group and collapse."""
    shape: dict[str, Any] = {}
    if draw(st.sampled_from([False, False, False, True])):
        collapses = [
            k for k in _FACTORS if rows % k == 0 and _collapsed(read.levels, Fraction(k)) is not None
        ]
        shape |= draw(_chosen("collapse", collapses))
    collapse = shape.get("collapse", 1)
    if draw(st.sampled_from([False, False, False, True])):
        groups = [
            k
            for k in (2, 3, 4, 6, 12)
            if rows % k == 0 and k % collapse == 0 and _collapsed(read.levels, Fraction(k)) is not None
        ]
        shape |= draw(_chosen("group", groups))
    if draw(st.sampled_from([False, False, False, True])):
        shape |= draw(_chosen("expand", [k for k in _FACTORS if rows // collapse * k <= limits.rows]))
    return shape


def _chosen(key: str, values: Sequence[int]) -> SearchStrategy[dict[str, int]]:
    return st.sampled_from([{key: value} for value in values]) if values else st.just({})


def _replicas(nodes: Sequence[Node], limits: Limits) -> SearchStrategy[dict[str, Any]]:
    """Replicas of its own, or those of another node."""
    own = st.builds(lambda count: {"replicas": count}, st.integers(1, limits.replicas))
    owners = [node.name for node in nodes if node.replicas_of is None]
    if not owners:
        return own
    shared = st.builds(lambda owner: {"replicas_of": owner}, st.sampled_from(owners))
    return own | own | shared


def _subsets(names: Sequence[str], most: int) -> SearchStrategy[list[str]]:
    if not names:
        return st.just([])
    return st.lists(st.sampled_from(names), max_size=most, unique=True)


def _finest(streams: Sequence[_Stream]) -> _Stream:
    return max(streams, key=lambda stream: (stream.per_sample, len(stream.levels)))


def _can_meet(streams: Sequence[_Stream]) -> bool:
    fine = _finest(streams)
    return all(_is_parent(stream, fine) for stream in streams)


def _is_parent(coarse: _Stream, fine: _Stream) -> bool:
    """Whether each row of ``fine`` has one row of ``coarse`` as its equal or parent."""
    if coarse.per_sample == fine.per_sample:
        return True
    if len(coarse.levels) > len(fine.levels):
        return False
    *outer, (origin, rows) = coarse.levels
    twin_origin, twin_rows = fine.levels[len(outer)]
    return tuple(outer) == fine.levels[: len(outer)] and origin == twin_origin and twin_rows % rows == 0


def _collapsed(
    levels: tuple[tuple[str, Fraction], ...], rows: Fraction
) -> tuple[tuple[str, Fraction], ...] | None:
    """Return the levels after every ``rows`` rows became one; None where they do not divide."""
    if rows == 1:
        return levels
    *outer, (origin, inner) = levels
    if not outer or (rows < inner and inner % rows == 0):
        return (*outer, (origin, inner / rows))
    return _collapsed(tuple(outer), rows / inner) if rows % inner == 0 else None
