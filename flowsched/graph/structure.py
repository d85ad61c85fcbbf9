"""What is wrong between the fields of a declared graph: names, replicas, groups and cycles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from flowsched.errors import Problem, say_known
from flowsched.graph.fields import Where
from flowsched.graph.readable import ReadableGraph, Row


def structure_problems(graph: ReadableGraph) -> Iterator[Problem]:
    """Yield what is wrong between the fields of a graph, as far as they can be read."""
    yield from _duplicate_names(graph)
    yield from _unknown_names(graph)
    unambiguous = _unambiguous(graph)
    for row in graph.rows:
        yield from _input_problems(row)
        yield from _replicas_of_problems(row, unambiguous)
        yield from _group_problems(row)
    yield from _cycles(unambiguous)


def _duplicate_names(graph: ReadableGraph) -> Iterator[Problem]:
    places = [*graph.sources, *((name, (*row.where, "name")) for name, row in graph.nodes())]
    last = dict(places)
    for name, count in Counter(name for name, _ in places).items():
        if count > 1:
            mend = "Give each source and each node a name of its own"
            yield Problem("duplicate-name", f"name {name!r}", f"it is used {count} times", mend, last[name])
    if len({name for name, _ in graph.outputs}) < len(graph.outputs):
        mend = "Name each output once"
        yield Problem("duplicate-name", "graph, outputs", "an output is named twice", mend, ("outputs",))


@dataclass(frozen=True)
class _Reference:
    """A name that is used; ``to_node`` where it must be that of a node, and not of a source."""

    place: str
    name: str
    where: Where
    to_node: bool


def _references(graph: ReadableGraph) -> Iterator[_Reference]:
    for row in graph.rows:
        for field, names in (("inputs", row.inputs), ("after", row.after), ("replicas_of", row.replicas_of)):
            for name, where in names:
                yield _Reference(f"{row.place}, {field}", name, where, to_node=field != "inputs")
    for name, where in graph.outputs:
        yield _Reference("graph, outputs", name, where, to_node=True)


def _unknown_names(graph: ReadableGraph) -> Iterator[Problem]:
    nodes = dict.fromkeys(name for name, _ in graph.nodes())
    both = dict.fromkeys([*(name for name, _ in graph.sources), *nodes])
    unknown = [used for used in _references(graph) if used.name not in (nodes if used.to_node else both)]
    excused = _may_be_unreadable(graph, unknown, both)
    for used in unknown:
        if used.name in excused:
            continue
        known, kind = (nodes, "nodes") if used.to_node else (both, "sources and nodes")
        message = f"it names {used.name!r}, which {'is no node' if used.to_node else 'nobody produces'}"
        mend = say_known(used.name, list(known), kind)
        yield Problem("unknown-name", used.place, message, mend, used.where)


def _may_be_unreadable(
    graph: ReadableGraph, unknown: Sequence[_Reference], known: Collection[str]
) -> set[str]:
    """Return the unknown names that may be those of sources and nodes whose own names cannot be read.

    Each of these excuses one name. A name close to a known one is misspelt rather than meant for them.
    """
    sources, nodes = graph.unnamed_sources, graph.unnamed_nodes
    if not sources and not nodes:
        return set()
    of_nodes = {used.name for used in unknown if used.to_node}
    excused = set()
    for name in sorted({used.name for used in unknown}, key=lambda name: (_closeness(name, known), name)):
        if sources and name not in of_nodes:
            sources -= 1
            excused.add(name)
        elif nodes and name not in known:
            nodes -= 1
            excused.add(name)
    return excused


def _closeness(name: str, known: Collection[str]) -> float:
    return max((SequenceMatcher(None, name, other).ratio() for other in known), default=0.0)


def _unambiguous(graph: ReadableGraph) -> dict[str, Row]:
    """Return the nodes whose names are theirs alone."""
    names = [*(name for name, _ in graph.sources), *(name for name, _ in graph.nodes())]
    counts = Counter(names)
    return {name: row for name, row in graph.nodes() if counts[name] == 1}


def _input_problems(row: Row) -> Iterator[Problem]:
    place, where = f"{row.place}, inputs", (*row.where, "inputs")
    if row.reads_nothing:
        yield Problem("empty", place, "it reads nothing", "Name the sources or nodes that it reads", where)
    last = dict(row.inputs)
    for name, count in Counter(name for name, _ in row.inputs).items():
        if count > 1:
            message = f"it reads {name!r} {'twice' if count == 2 else f'{count} times'}"
            mend = "Read it once and use it as often as needed in the worker"
            yield Problem("duplicate-name", place, message, mend, last[name])


def _replicas_of_problems(row: Row, by_name: Mapping[str, Row]) -> Iterator[Problem]:
    for name, where in row.replicas_of:
        owner = by_name.get(name)
        if owner is None:
            continue
        if owner.replicas_of:
            ((other, _),) = owner.replicas_of
            message = f"{name!r} has no replicas of its own: it says replicas_of {other!r}"
            holders = [holder for holder, held in by_name.items() if not held.shares]
            mend = f"Name a node that has replicas of its own: {', '.join(holders) or 'none'}"
            yield Problem("bad-replicas-of", row.place, message, mend, where)
        elif not owner.shares:
            yield from _replica_count_problems(row, name, owner)


def _replica_count_problems(row: Row, name: str, owner: Row) -> Iterator[Problem]:
    asked, given = row.sizes.get("replicas", 1), owner.sizes.get("replicas")
    if given is not None and asked not in (1, given):
        message = f"it asks for {asked} replicas, but is served by the {given} of {name!r}"
        mend = "Leave replicas out, or give the node replicas of its own"
        yield Problem("bad-replicas-of", row.place, message, mend, (*row.where, "replicas"))


def _group_problems(row: Row) -> Iterator[Problem]:
    group, collapse = row.sizes.get("group", 1), row.sizes.get("collapse", 1)
    unit = max(group, collapse)
    if "collapse" in row.sizes and group > 1 and group % collapse:
        message = f"group {group} is not a multiple of collapse {collapse}"
        mend = "Leave group out: rows that collapse into one stay together anyway"
        yield Problem("group", row.place, message, mend, (*row.where, "group"))
        unit = collapse
    batch_size = row.sizes.get("batch_size")
    if batch_size is not None and batch_size < unit:
        message = f"batch_size {batch_size} is below the {unit} rows that must stay in one call"
        mend = f"Give batch_size {unit} or more, or leave it out"
        yield Problem("group", row.place, message, mend, (*row.where, "batch_size"))


def _cycles(by_name: Mapping[str, Row]) -> Iterator[Problem]:
    from flowsched.graph.topology import find_cycles

    declared = {name: at for at, name in enumerate(by_name)}
    edges = [
        (other, name)
        for name, row in by_name.items()
        for other, _ in (*row.inputs, *row.after)
        if other in by_name
    ]
    for cycle in find_cycles(edges):
        first = cycle.index(min(cycle, key=lambda name: declared[name]))
        said = "nodes wait for each other" if len(cycle) > 1 else "it waits for itself"
        message = f"{said}: {' -> '.join([*cycle[first:], *cycle[: first + 1]])}"
        mend = (
            "Leave one of these names out of the inputs, or the after, of the node that waits for it, "
            "or run the loop as several steps"
        )
        yield Problem("cycle", f"node {cycle[first]!r}", message, mend, by_name[cycle[first]].where)
