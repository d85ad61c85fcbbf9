"""What is wrong with a declared graph: every problem in one look."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from flowsched.errors import Problem, say_known

if TYPE_CHECKING:
    from flowsched.graph.declaration import Node

Where = tuple[str | int, ...]


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
    by_name = {node.name: node for node in nodes}
    for index, node in enumerate(nodes):
        problems += _node_problems(node, by_name, ("nodes", index))
    if not problems:
        problems += _cycles(nodes)
    return problems


def _field_problems(given: Mapping[str, Any]) -> Iterator[Problem]:
    from flowsched.graph.declaration import Name, Node
    from flowsched.graph.schema import NodeFields

    names: TypeAdapter[Any] = TypeAdapter(tuple[Name, ...])
    yield from _checked(TypeAdapter(Name), given["name"], "graph", ("name",))
    for key in ("sources", "outputs"):
        if given[key] is not None or key == "sources":
            yield from _checked(names, given[key], "graph", (key,))
        if given[key] == ():
            yield Problem(
                "empty", f"graph, {key}", f"{key} is empty", f"Name at least one of its {key}", (key,)
            )
    if given["nodes"] == ():
        yield Problem("empty", "graph, nodes", "there are no nodes", "Declare at least one node", ("nodes",))
    if not isinstance(given["nodes"], tuple):
        message = f"nodes is {_say_value(given['nodes'])}, not a list"
        yield Problem("wrong-type", "graph, nodes", message, "Write a list of nodes", ("nodes",))
        return
    adapter = TypeAdapter(NodeFields)
    for i, node in enumerate(given["nodes"]):
        where: Where = ("nodes", i)
        if not isinstance(node, Node):
            message = f"{_say_value(node)} is not a node"
            mend = "Give a node, with its name, inputs, replicas and batch_size"
            yield Problem("wrong-type", f"nodes[{i}]", message, mend, where)
            continue
        row = {key: getattr(node, key) for key in Node.__dataclass_fields__}
        place = f"node {node.name!r}" if isinstance(node.name, str) else f"nodes[{i}]"
        yield from _checked(adapter, row, place, where)


def _checked(adapter: TypeAdapter[Any], value: object, place: str, where: Where) -> Iterator[Problem]:
    try:
        adapter.validate_python(value, strict=True)
    except ValidationError as error:
        for detail in error.errors():
            inner = [part for part in detail["loc"] if part != "constrained-int"]
            yield say_field_problem(detail["type"], detail["input"], place, (*where, *inner))


def say_field_problem(kind: str, value: object, place: str, where: Where) -> Problem:
    """Return the problem that pydantic calls ``kind`` in flowsched's words.

    Args:
        kind: pydantic's name for it.
        value: what was given.
        place: the node, or ``graph``.
        where: the place of the value; it ends with the name of the field, or with that and an index.
    """
    *_, field, index = ("", *where) if isinstance(where[-1], int) else (*where, None)
    got = f"{field if index is None else f'{field}[{index}]'} is {_say_value(value)}"
    place = f"{place}, {field}"
    if kind == "greater_than_equal":
        mend = f"Give {field} as a whole number of 1 or more"
        return Problem("too-small", place, f"{field} is {value!r}", mend, where)
    if kind.startswith("int_"):
        allowed = "a whole number of 1 or more" + (", or leave it out" if field == "batch_size" else "")
        return Problem("wrong-type", place, got, f"Give {field} as {allowed}", where)
    if kind == "string_pattern_mismatch":
        mend = "Use letters, digits, _ and -, beginning with a letter or _"
        return Problem("bad-name", place, f"{value!r} is not a name", mend, where)
    if kind == "tuple_type" and isinstance(value, str):
        mend = f'Write {field} as a list, ["{value}"]'
        return Problem("wrong-type", place, f"{field} is {value!r}, one string", mend, where)
    expected = "a list of names" if kind == "tuple_type" else "a name (a string)"
    return Problem("wrong-type", place, got, f"Give {expected}", where)


def _say_value(value: object, longest: int = 80) -> str:
    text = repr(value)
    text = text if len(text) <= longest else f"{text[: longest - 3]}..."
    return f"{text} ({type(value).__name__})"


def _duplicates(sources: tuple[str, ...], nodes: tuple[Node, ...]) -> Iterator[Problem]:
    places: list[tuple[str, Where]] = [(name, ("sources", i)) for i, name in enumerate(sources)]
    places += [(node.name, ("nodes", i, "name")) for i, node in enumerate(nodes)]
    last = dict(places)
    for name, count in Counter(name for name, _ in places).items():
        if count > 1:
            mend = "Give each source and each node a name of its own"
            yield Problem("duplicate-name", f"name {name!r}", f"it is used {count} times", mend, last[name])


def _unknown_names(
    sources: tuple[str, ...], nodes: tuple[Node, ...], outputs: tuple[str, ...] | None
) -> Iterator[Problem]:
    names = [node.name for node in nodes]
    known = {
        "inputs": (list(dict.fromkeys([*sources, *names])), "sources and nodes"),
        "after": (names, "nodes"),
        "replicas_of": (names, "nodes"),
    }
    lookup = {field: set(candidates) for field, (candidates, _) in known.items()}
    for index, node in enumerate(nodes):
        for field, (candidates, kind) in known.items():
            for name, where in _names_in(getattr(node, field), ("nodes", index, field)):
                if name not in lookup[field]:
                    what = "which nobody produces" if field == "inputs" else "which is no node"
                    place = f"node {node.name!r}, {field}"
                    mend = say_known(name, candidates, kind)
                    yield Problem("unknown-name", place, f"it names {name!r}, {what}", mend, where)
    for name, where in _names_in(outputs, ("outputs",)):
        if name not in lookup["after"]:
            mend = say_known(name, names, "nodes")
            yield Problem(
                "unknown-name", "graph, outputs", f"it names {name!r}, which is no node", mend, where
            )
    if outputs and len(set(outputs)) < len(outputs):
        mend = "Name each output once"
        yield Problem("duplicate-name", "graph, outputs", "an output is named twice", mend, ("outputs",))


def _names_in(value: str | tuple[str, ...] | None, where: Where) -> Iterator[tuple[str, Where]]:
    if isinstance(value, str):
        yield value, where
        return
    for i, name in enumerate(value or ()):
        yield name, (*where, i)


def _node_problems(node: Node, by_name: Mapping[str, Node], where: Where) -> Iterator[Problem]:
    place = f"node {node.name!r}"
    if not node.inputs:
        mend = "Name the sources or nodes that it reads"
        yield Problem("empty", f"{place}, inputs", "it reads nothing", mend, (*where, "inputs"))
    repeated = [name for name, count in Counter(node.inputs).items() if count > 1]
    if repeated:
        message, mend = f"it reads {repeated[0]!r} twice", "Read it once and use it twice in the worker"
        yield Problem("duplicate-name", f"{place}, inputs", message, mend, (*where, "inputs"))
    yield from _replicas_of_problems(node, by_name, where)
    if node.group % node.collapse and node.group > 1:
        message = f"group {node.group} is not a multiple of collapse {node.collapse}"
        mend = "Leave group out: rows that collapse into one stay together anyway"
        yield Problem("group", place, message, mend, (*where, "group"))
    elif node.batch_size is not None and node.batch_size < node.unit:
        message = f"batch_size {node.batch_size} is below the {node.unit} rows that must stay in one call"
        mend = f"Give batch_size {node.unit} or more, or leave it out"
        yield Problem("group", place, message, mend, (*where, "batch_size"))


def _replicas_of_problems(node: Node, by_name: Mapping[str, Node], where: Where) -> Iterator[Problem]:
    place = f"node {node.name!r}"
    owner = by_name.get(node.replicas_of) if node.replicas_of else None
    if owner is not None and owner.replicas_of is not None:
        message = f"{owner.name!r} has no replicas of its own: it says replicas_of {owner.replicas_of!r}"
        holders = [name for name, other in by_name.items() if other.replicas_of is None]
        mend = f"Name a node that has replicas of its own: {', '.join(holders) or 'none'}"
        yield Problem("bad-replicas-of", place, message, mend, (*where, "replicas_of"))
    elif owner is not None and node.replicas not in (1, owner.replicas):
        message = (
            f"it asks for {node.replicas} replicas, but is served by the {owner.replicas} of {owner.name!r}"
        )
        mend = "Leave replicas out, or give the node replicas of its own"
        yield Problem("bad-replicas-of", place, message, mend, (*where, "replicas"))


def _cycles(nodes: tuple[Node, ...]) -> Iterator[Problem]:
    from flowsched.graph.topology import find_cycle

    cycle = find_cycle(nodes)
    if cycle:
        first = [node.name for node in nodes].index(cycle[0])
        message = f"nodes wait for each other: {' -> '.join(cycle)}"
        mend = "Take out one of these inputs or after, or run the loop as several steps"
        yield Problem("cycle", f"node {cycle[0]!r}", message, mend, ("nodes", first))
