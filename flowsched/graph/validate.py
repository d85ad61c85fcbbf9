"""What is wrong with a declared graph: every problem in one look."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from flowsched.errors import Problem, say_known

if TYPE_CHECKING:
    from flowsched.graph.declaration import Node


def find_problems(given: Mapping[str, Any]) -> list[Problem]:
    """Return all problems of a graph given as its fields (``outputs`` may be None).

    Names and structure are looked at only where the fields themselves are sound.
    """
    problems = list(_field_problems(given))
    if problems:
        return problems
    nodes: tuple[Node, ...] = given["nodes"]
    problems += _duplicates(given["sources"], nodes)
    problems += _unknown_names(given["sources"], nodes, given["outputs"])
    for node in nodes:
        problems += _node_problems(node, {other.name: other for other in nodes})
    if not problems:
        problems += _cycles(nodes)
    return problems


def _field_problems(given: Mapping[str, Any]) -> Iterator[Problem]:
    from flowsched.graph.declaration import Name, Node
    from flowsched.graph.schema import NodeFields

    names: TypeAdapter[Any] = TypeAdapter(tuple[Name, ...])
    yield from _checked(TypeAdapter(Name), given["name"], "graph", "name")
    for key in ("sources", "outputs"):
        if given[key] is not None:
            yield from _checked(names, given[key], "graph", key)
        if given[key] == ():
            yield Problem("empty", f"graph, {key}", f"{key} is empty", f"Name at least one of its {key}")
    if not given["nodes"]:
        yield Problem("empty", "graph, nodes", "there are no nodes", "Declare at least one fs.Node(...)")
    if isinstance(given["nodes"], str | Node):
        yield Problem("wrong-type", "graph, nodes", "nodes is not a list", "Write nodes=[fs.Node(...), ...]")
        return
    adapter = TypeAdapter(NodeFields)
    for i, node in enumerate(given["nodes"]):
        if not isinstance(node, Node):
            kind = type(node).__name__
            yield Problem("wrong-type", f"nodes[{i}]", f"a {kind} is not a node", "Write fs.Node(...)")
            continue
        row = {key: getattr(node, key) for key in Node.__dataclass_fields__}
        yield from _checked(adapter, row, f"node {node.name!r}", None)


def _checked(adapter: TypeAdapter[Any], value: object, place: str, field: str | None) -> Iterator[Problem]:
    try:
        adapter.validate_python(value, strict=True)
    except ValidationError as error:
        for detail in error.errors():
            where = [str(part) for part in detail["loc"] if part != "constrained-int"]
            yield say_field_problem(detail["type"], field or where[0], detail["input"], place)


def say_field_problem(kind: str, field: str, value: object, place: str) -> Problem:
    """Return the problem that pydantic calls ``kind`` in flowsched's words."""
    got = f"{field} is {value!r}"
    place = f"{place}, {field}"
    if kind == "greater_than_equal":
        return Problem("too-small", place, got, f"Give {field} as a whole number of 1 or more")
    if kind.startswith("int_"):
        allowed = "a whole number of 1 or more" + (", or None" if field == "batch_size" else "")
        return Problem("wrong-type", place, f"{got} ({type(value).__name__})", f"Give {field} as {allowed}")
    if kind == "tuple_type" and isinstance(value, str):
        return Problem("wrong-type", place, f"{got}, one string", f"Write {field}=[{value!r}]")
    if kind == "string_pattern_mismatch":
        mend = "Use letters, digits, _ and -, beginning with a letter or _"
        return Problem("bad-name", place, f"{value!r} is not a name", mend)
    expected = "a list of names" if kind == "tuple_type" else "a name (a string)"
    return Problem("wrong-type", place, f"{got} ({type(value).__name__})", f"Give {expected}")


def _duplicates(sources: tuple[str, ...], nodes: tuple[Node, ...]) -> Iterator[Problem]:
    counts = Counter([*sources, *(node.name for node in nodes)])
    for name, count in counts.items():
        if count > 1:
            mend = "Give each source and each node a name of its own"
            yield Problem("duplicate-name", f"name {name!r}", f"it is used {count} times", mend)


def _unknown_names(
    sources: tuple[str, ...], nodes: tuple[Node, ...], outputs: tuple[str, ...] | None
) -> Iterator[Problem]:
    names = [node.name for node in nodes]
    known = {
        "inputs": ([*sources, *names], "sources and nodes"),
        "after": (names, "nodes"),
        "replicas_of": (names, "nodes"),
    }
    for node in nodes:
        for field, (candidates, kind) in known.items():
            value = getattr(node, field)
            for name in (value,) if isinstance(value, str) else value or ():
                if name not in candidates:
                    what = "which nobody produces" if field == "inputs" else "which is no node"
                    place = f"node {node.name!r}, {field}"
                    mend = say_known(name, candidates, kind)
                    yield Problem("unknown-name", place, f"it names {name!r}, {what}", mend)
    for name in outputs or ():
        if name not in names:
            mend = say_known(name, names, "nodes")
            yield Problem("unknown-name", "graph, outputs", f"it names {name!r}, which is no node", mend)
    if outputs and len(set(outputs)) < len(outputs):
        yield Problem("duplicate-name", "graph, outputs", "an output is named twice", "Name each output once")


def _node_problems(node: Node, by_name: Mapping[str, Node]) -> Iterator[Problem]:
    place = f"node {node.name!r}"
    if not node.inputs:
        yield Problem(
            "empty", f"{place}, inputs", "it reads nothing", "Name the sources or nodes that it reads"
        )
    repeated = [name for name, count in Counter(node.inputs).items() if count > 1]
    if repeated:
        mend = "Read it once and use it twice in the worker"
        yield Problem("duplicate-name", f"{place}, inputs", f"it reads {repeated[0]!r} twice", mend)
    owner = by_name.get(node.replicas_of) if node.replicas_of else None
    if owner is not None and owner.replicas_of is not None:
        mend = f"Write replicas_of={owner.replicas_of!r}, the node that has the replicas"
        yield Problem("bad-replicas-of", place, f"{owner.name!r} has no replicas of its own", mend)
    elif owner is not None and node.replicas not in (1, owner.replicas):
        message = (
            f"it asks for {node.replicas} replicas, but is served by the {owner.replicas} of {owner.name!r}"
        )
        yield Problem(
            "bad-replicas-of", place, message, "Leave replicas out, or give the node replicas of its own"
        )
    if node.group % node.collapse and node.group > 1:
        message = f"group {node.group} is not a multiple of collapse {node.collapse}"
        yield Problem(
            "group", place, message, "Leave group out: rows that collapse into one stay together anyway"
        )
    elif node.batch_size is not None and node.batch_size < node.unit:
        message = f"batch_size {node.batch_size} is below the {node.unit} rows that must stay in one call"
        yield Problem("group", place, message, f"Give batch_size {node.unit} or more, or None")


def _cycles(nodes: tuple[Node, ...]) -> Iterator[Problem]:
    from flowsched.graph.topology import find_cycle

    cycle = find_cycle(nodes)
    if cycle:
        mend = "Take out one of these inputs= or after=, or run the loop as several steps"
        yield Problem("cycle", f"node {cycle[0]!r}", f"nodes wait for each other: {' -> '.join(cycle)}", mend)
