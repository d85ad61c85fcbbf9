"""``--set nodes.reward.replicas=6``: a graph with some of its fields changed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import typer

from flowsched.errors import GraphError, Problem, say_known
from flowsched.graph import Graph
from flowsched.graph.document import Where
from flowsched.graph.document_keys import GRAPH_FIELDS, NODE_FIELDS
from flowsched.graph.from_document import graph_from_dict

_NUMBER = re.compile(r"[-+]?(0|[1-9][0-9]{0,999})")  # as graph files write them
_LISTS = ("sources", "outputs", "inputs", "after")
_TEXTS = ("name", "replicas_of", "method")
_NO_VALUE = ("batch_size", "replicas_of", "method", "outputs")


def apply_settings(graph: Graph, settings: Sequence[str] | None) -> Graph:
    """Return ``graph`` with fields changed.

    Args:
        graph: the graph.
        settings: each ``nodes.NODE.FIELD=VALUE`` or ``FIELD=VALUE``; ``none`` stands for no value, and a list is
            written ``a,b``.

    Raises:
        GraphError: a node or field is unknown, a value is not what its field holds, or the graph that results
            cannot be.
        BadParameter: a setting is not written like this.
    """
    if not settings:
        return graph
    data = graph.to_dict()
    places: dict[Where, str] = {}
    problems = []
    for setting in settings:
        path, equals, text = setting.partition("=")
        if not equals:
            message = f"{setting!r} is not PATH=VALUE, e.g. nodes.reward.replicas=6"
            raise typer.BadParameter(message, param_hint="--set")
        where = _find(graph, path.strip(), setting)
        if isinstance(where, Problem):
            problems.append(where)
        else:
            _put(data, where, _parse(str(where[-1]), text.strip()))
            places[where] = f"--set {setting}"
    subject = f"graph {graph.name!r} with --set"
    try:
        changed = graph_from_dict(data, subject, places)
    except GraphError as error:
        problems += error.problems
    if problems:
        raise GraphError(subject, problems)
    return changed


def _put(data: Any, where: Where, value: Any) -> None:
    for part in where[:-1]:
        data = data[part]
    data[where[-1]] = value


def _find(graph: Graph, path: str, setting: str) -> Where | Problem:
    """Return the place in ``Graph.to_dict()`` that a path names."""
    place = f"--set {setting}"
    match path.split("."):
        case ["nodes", node, field]:
            names = [other.name for other in graph.nodes]
            if node not in names:
                mend = say_known(node, names, "nodes")
                return Problem("unknown-name", place, f"the graph has no node {node!r}", mend)
            if field in NODE_FIELDS:
                return "nodes", names.index(node), field
            mend = say_known(field, NODE_FIELDS, "fields")
            return Problem("unknown-key", place, f"node {node!r} has no field {field!r}", mend)
        case [field] if field in GRAPH_FIELDS and field != "nodes":
            return (field,)
    mend = "Write nodes.NODE.FIELD=VALUE, or name, sources or outputs"
    return Problem("unknown-key", place, f"{path!r} is no path to a field", mend)


def _parse(field: str, text: str) -> Any:
    """Return the value that a text stands for; what is no number where one belongs stays a text, and is refused."""
    if text.lower() in ("none", "null") and field in _NO_VALUE:
        return None
    if field in _LISTS:
        names = text.removeprefix("[").removesuffix("]").split(",")
        return [name.strip() for name in names if name.strip()]
    if field in _TEXTS:
        return text
    return int(text) if _NUMBER.fullmatch(text) else text
