"""From plain data to a graph, every problem reported at the place where it is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from flowsched.errors import GraphError, Problem, say_known
from flowsched.graph.declaration import Graph, Node
from flowsched.graph.document import Document, Mark, Where
from flowsched.graph.validate import find_problems

NODE_FIELDS = tuple(item.name for item in fields(Node))
GRAPH_FIELDS = tuple(item.name for item in fields(Graph) if item.init)
SCHEMA_KEY = "$schema"

_REQUIRED = {"graph": ("name", "sources", "nodes"), "node": ("name",)}
_SINGLE_NAMES = ("name", "replicas_of", "method")


def graph_from_dict(data: object, place: str, places: Mapping[Where, str] | None = None) -> Graph:
    """Return the graph that plain data, such as :meth:`Graph.to_dict` returns, stands for.

    Args:
        data: a mapping of the graph's fields; the nodes are mappings of theirs.
        place: what the data is called where something is wrong with it, e.g. the name of a file.
        places: what single values are called, by the keys and indices that lead to them.

    Raises:
        GraphError: with all that is wrong.

    >>> graph_from_dict({"name": "one", "sources": ["x"], "nodes": [{"name": "a", "inputs": ["x"]}]}, "here")
    <Graph one: 1 nodes, 1 replicas>
    """
    marks = {where: Mark(text) for where, text in (places or {}).items()}
    return graph_from_document(Document(place, data, Mark(place), marks))


def graph_from_document(document: Document) -> Graph:
    """Return the graph that a document holds.

    Raises:
        GraphError: with all that is wrong, in the order in which it is written.
    """
    located = list(document.problems)
    if not isinstance(document.data, Mapping):
        kind = "empty" if document.data is None else f"a {type(document.data).__name__}"
        message = f"the graph is {kind}, not a mapping of its fields"
        mend = f"Give it the fields {', '.join(GRAPH_FIELDS)}"
        located.append((document.root, Problem("wrong-type", str(document.root), message, mend)))
        raise _graph_error(document, located)
    located += _shape_problems(document)
    reported = [problem for _, problem in located]
    given = _fields_of(document.data)
    for problem in find_problems(given):
        if not _follows(problem, reported, document):
            located.append(_locate(problem, document))
    if located:
        raise _graph_error(document, located)
    return Graph(**given)


def _graph_error(document: Document, located: Iterable[tuple[Mark, Problem]]) -> GraphError:
    in_order = sorted(located, key=lambda item: (item[0].line, item[0].column))
    return GraphError(document.subject, (problem for _, problem in in_order))


def _fields_of(data: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the arguments of ``Graph``, right or wrong; what is no field is left out."""
    given = {key: _as_declared(data.get(key)) for key in GRAPH_FIELDS}
    if isinstance(given["nodes"], tuple):
        given["nodes"] = tuple(_node_of(row) for row in given["nodes"])
    return given


def _node_of(row: object) -> object:
    if not isinstance(row, Mapping):
        return row
    known = {key: _as_declared(row[key]) for key in NODE_FIELDS if key in row}
    return Node(**{"name": None, **known})


def _as_declared(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _shape_problems(document: Document) -> Iterator[tuple[Mark, Problem]]:
    data = document.data
    yield from _key_problems(document, (), "graph", (*GRAPH_FIELDS, SCHEMA_KEY))
    if not isinstance(data.get(SCHEMA_KEY, ""), str):
        mark = document.mark((SCHEMA_KEY,))
        message = f"{SCHEMA_KEY} is {data[SCHEMA_KEY]!r}"
        yield mark, Problem("wrong-type", str(mark), message, "Give the address of the schema, a string")
    nodes = data.get("nodes")
    for index, row in enumerate(nodes if isinstance(nodes, list | tuple) else ()):
        if isinstance(row, Mapping):
            yield from _key_problems(document, ("nodes", index), "node", NODE_FIELDS)


def _key_problems(
    document: Document, where: Where, kind: str, known: tuple[str, ...]
) -> Iterator[tuple[Mark, Problem]]:
    """Yield the keys of one mapping that are unknown, and those that are missing and not just misspelt."""
    row: Mapping[Any, Any] = document.value(where)
    said = _say_row(row, where)
    meant = []
    for key in row:
        if key not in known:
            mark = document.keys.get((*where, key)) or document.mark((*where, key))
            mend = say_known(str(key), [name for name in known if name != SCHEMA_KEY], "keys")
            meant += [name for name in _REQUIRED[kind] if f"mean {name!r}" in mend]
            problem = Problem(
                "unknown-key", str(mark), f"{said} has no key {key!r}", mend, (*where, str(key))
            )
            yield mark, problem
    for key in _REQUIRED[kind]:
        if key not in row and key not in meant:
            mark = document.mark(where)
            message, mend = f"{said} has no {key}", f"Give it the key {key!r}"
            yield mark, Problem("missing-key", str(mark), message, mend, (*where, key))


def _say_row(row: Mapping[Any, Any], where: Where) -> str:
    if not where:
        return "the graph"
    name = row.get("name")
    return f"node {name!r}" if isinstance(name, str) else f"nodes[{where[-1]}]"


def _follows(problem: Problem, found: list[Problem], document: Document) -> bool:
    """Whether a problem only follows from one reported already: of a value unreadable, missing or misspelt."""
    *row, field = problem.where
    holder = document.value(tuple(row))
    unwritten = isinstance(holder, Mapping) and field not in holder
    return any(
        other.where == problem.where
        or (unwritten and other.code == "unknown-key" and other.where[:-1] == tuple(row))
        for other in found
    )


def _locate(problem: Problem, document: Document) -> tuple[Mark, Problem]:
    """Return the problem at the place where it is written, and in the words that are written there."""
    mark = document.mark(problem.where)
    located = replace(problem, place=f"{mark}: {problem.place}")
    if problem.code == "wrong-type" and mark.written:
        value = document.value(problem.where)
        if mark.written != repr(value):
            message = f"YAML reads {mark.written} as {value!r} ({type(value).__name__})"
            located = replace(located, message=message)
        if _is_one_name(problem.where) and mark.written.isidentifier():
            located = replace(located, mend=f'Put it in quotes, "{mark.written}"')
    return mark, located


def _is_one_name(where: Where) -> bool:
    *row, last = where
    return last in _SINGLE_NAMES or (isinstance(last, int) and row != ["nodes"])
