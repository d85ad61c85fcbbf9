"""From plain data to a graph, every problem reported at the place where it is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from flowsched.errors import GraphError, Problem
from flowsched.graph.declaration import Graph, Node
from flowsched.graph.document import Document, Mark, Where
from flowsched.graph.document_keys import GRAPH_FIELDS, NODE_FIELDS, DocumentKeys
from flowsched.graph.validate import find_problems

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
    keys = DocumentKeys(document)
    located += keys.problems()
    given = _fields_of(document.data, keys)
    refused = {keys.field(problem.where) for _, problem in located if problem.code != "unknown-key"}
    located += [_locate(problem, document, keys) for problem in find_problems(given, refused | keys.lost)]
    if located:
        raise _graph_error(document, located)
    return Graph(**given)


def _graph_error(document: Document, located: Iterable[tuple[Mark, Problem]]) -> GraphError:
    in_order = sorted(located, key=lambda item: (item[0].line, item[0].column))
    return GraphError(document.subject, (problem for _, problem in in_order))


def _fields_of(data: Mapping[Any, Any], keys: DocumentKeys) -> dict[str, Any]:
    """Return the arguments of ``Graph``, right or wrong; what is no field is left out."""
    given = {key: _as_declared(data.get(keys.written((), key))) for key in GRAPH_FIELDS}
    if isinstance(given["nodes"], tuple):
        nodes = enumerate(given["nodes"])
        given["nodes"] = tuple(_node_of(row, ("nodes", index), keys) for index, row in nodes)
    return given


def _node_of(row: object, where: Where, keys: DocumentKeys) -> object:
    if not isinstance(row, Mapping):
        return row
    written = {key: keys.written(where, key) for key in NODE_FIELDS}
    known = {key: _as_declared(row[name]) for key, name in written.items() if name in row}
    return Node(**{"name": None, **known})


def _as_declared(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _locate(problem: Problem, document: Document, keys: DocumentKeys) -> tuple[Mark, Problem]:
    """Return the problem at the place where it is written, and in the words that are written there."""
    where = keys.place(problem.where)
    mark = document.mark(where)
    located = replace(problem, place=f"{mark}: {problem.place}", where=where)
    if problem.code == "wrong-type" and mark.written:
        value = document.value(where)
        if mark.written != repr(value):
            message = f"YAML reads {mark.written} as {value!r} ({type(value).__name__})"
            located = replace(located, message=message)
        if _is_one_name(problem.where) and mark.written.isidentifier():
            located = replace(located, mend=f'Put it in quotes, "{mark.written}"')
    return mark, located


def _is_one_name(where: Where) -> bool:
    *row, last = where
    return last in _SINGLE_NAMES or (isinstance(last, int) and row != ["nodes"])
