"""What is wrong with single fields of a declared graph: wrong types, sizes below 1, what is no name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from flowsched.errors import Problem

Where = tuple[str | int, ...]


def field_problems(given: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems of single fields; the graph is given as its fields (``outputs`` may be None)."""
    from flowsched.graph.declaration import Name, Node
    from flowsched.graph.schema import NodeFields

    names: TypeAdapter[Any] = TypeAdapter(tuple[Name, ...])
    yield from _checked(TypeAdapter(Name), given["name"], "graph", ("name",))
    for key in ("sources", "outputs"):
        if given[key] is not None or key == "sources":
            yield from _checked(names, given[key], "graph", (key,))
        if isinstance(given[key], tuple) and not given[key]:  # a user's type may compare in its own way
            yield Problem(
                "empty", f"graph, {key}", f"{key} is empty", f"Name at least one of its {key}", (key,)
            )
    if isinstance(given["nodes"], tuple) and not given["nodes"]:
        yield Problem("empty", "graph, nodes", "there are no nodes", "Declare at least one node", ("nodes",))
    if not isinstance(given["nodes"], tuple):
        message = f"nodes is {say_value(given['nodes'])}, not a list"
        yield Problem("wrong-type", "graph, nodes", message, "Write a list of nodes", ("nodes",))
        return
    adapter = TypeAdapter(NodeFields)
    for i, node in enumerate(given["nodes"]):
        where: Where = ("nodes", i)
        if not isinstance(node, Node):
            message = f"{say_value(node)} is not a node"
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
            yield _say_field_problem(detail["type"], detail["input"], place, (*where, *inner))


def _say_field_problem(kind: str, value: object, place: str, where: Where) -> Problem:
    """Return the problem that pydantic calls ``kind`` in flowsched's words.

    Args:
        kind: pydantic's name for it.
        value: what was given.
        place: the node, or ``graph``.
        where: the place of the value; it ends with the name of the field, or with that and an index.
    """
    from flowsched.graph.declaration import MOST_COUNT

    *_, field, index = ("", *where) if isinstance(where[-1], int) else (*where, None)
    got = f"{field if index is None else f'{field}[{index}]'} is {say_value(value)}"
    place = f"{place}, {field}"
    if kind == "greater_than_equal":
        mend = f"Give {field} as a whole number of 1 or more"
        return Problem("too-small", place, f"{field} is {say_short(value)}", mend, where)
    if kind == "less_than_equal":
        mend = f"Give {field} as {MOST_COUNT} or less"
        return Problem("too-large", place, f"{field} is {say_short(value)}", mend, where)
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


def say_value(value: object) -> str:
    """Return any value that was given, however large, with its type.

    >>> say_value(2.5), say_value(-(10**5000))
    ('2.5 (float)', 'less than -1e80 (int)')
    """
    return f"{say_short(value)} ({type(value).__name__})"


def say_short(value: object, longest: int = 80) -> str:
    """Return any value that was given, cut short where it is long."""
    if isinstance(value, int) and abs(value) > 10**longest:  # Python writes no number of thousands of digits
        return f"more than 1e{longest}" if value > 0 else f"less than -1e{longest}"
    text = repr(value)
    return text if len(text) <= longest else f"{text[: longest - 3]}..."
