"""How many rows each node reads and makes in the whole step, derived from the declared numbers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from flowsched.check.ancestry import MOST_ROWS, find_ancestry_problems
from flowsched.errors import Problem
from flowsched.graph import Graph, Node
from flowsched.plan import Plan


@dataclass(frozen=True)
class Sizes:
    """Rows of one node in one step.

    Attributes:
        read: rows that all its calls read together.
        made: rows that they make.
        times: for each input, the consecutive rows that share one row of it.
    """

    read: int
    made: int
    times: tuple[int, ...]


def find_sizes(graph: Graph, samples: int) -> Mapping[str, Sizes]:
    """Return the rows of each node that can be reached from the sources.

    A node reads as many rows as the finest of its inputs has. Where sizes do not divide, ``times`` is
    rounded down; :func:`find_size_problems` tells.
    """
    made = dict.fromkeys(graph.sources, samples)
    sizes: dict[str, Sizes] = {}
    for node in _producers_first(graph):
        read = max(made[name] for name in node.inputs)
        times = tuple(max(1, read // made[name]) if made[name] else 1 for name in node.inputs)
        sizes[node.name] = Sizes(read, read // node.collapse * node.expand, times)
        made[node.name] = min(sizes[node.name].made, MOST_ROWS + 1)  # what is too many need not grow
    return sizes


def find_size_problems(plan: Plan) -> Iterator[Problem]:
    """Yield what makes the graph impossible to plan for this number of samples."""
    graph, samples = plan.graph, plan.samples
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < 0:
        message = f"the plan is for {samples!r} samples"
        yield Problem("table", "samples", message, "Compile the graph for a whole number of 0 or more")
        return
    sizes = find_sizes(graph, samples)
    made = dict.fromkeys(graph.sources, samples) | {name: size.made for name, size in sizes.items()}
    unrelated = dict(find_ancestry_problems(graph.sources, _producers_first(graph)))
    for node in graph.nodes:
        place = f"node {node.name!r}"
        if node.name not in sizes:
            mend = "Take out one of the inputs that close the circle"
            yield Problem("no-deadlock", place, "its inputs wait for its own output", mend)
            continue
        problems = list(_find_indivisible(node, sizes[node.name], made))
        if not problems and node.name in unrelated:
            problems = [unrelated[node.name]]
        yield from problems


def _find_indivisible(node: Node, size: Sizes, made: Mapping[str, int]) -> Iterator[Problem]:
    """Yield what the numbers of rows alone forbid."""
    place = f"node {node.name!r}"
    if size.read % node.unit:
        message = f"its {size.read} rows are no whole number of groups of {node.unit}"
        yield Problem("group", place, message, f"Compile for rows that are a multiple of {node.unit}")
    if max(size.read, size.made) > MOST_ROWS:
        message = f"it reads {size.read} and makes {size.made} rows, more than can be counted"
        yield Problem("table", place, message, f"Stay below {MOST_ROWS} rows")
    for name in node.inputs:
        if size.read and (made[name] == 0 or size.read % made[name]):
            message = f"its {size.read} rows cannot share the {made[name]} rows of {name!r} evenly"
            yield Problem("alignment", place, message, "Collapse one of its inputs, or expand both alike")


def _producers_first(graph: Graph) -> Iterator[Node]:
    """Yield the nodes so that each comes after those it reads, leaving out those on a circle."""
    readers: dict[str, list[Node]] = {}
    missing: dict[str, int] = {}
    for node in graph.nodes:
        missing[node.name] = len(node.inputs)
        for name in node.inputs:
            readers.setdefault(name, []).append(node)
    ready = deque(graph.sources)
    while ready:
        for node in readers.get(ready.popleft(), ()):
            missing[node.name] -= 1
            if not missing[node.name]:
                ready.append(node.name)
                yield node
