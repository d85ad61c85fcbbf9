"""Graph files: the same thing as the declaration in Python, in YAML or JSON."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from flowsched.errors import GraphError, Problem
from flowsched.graph.declaration import Graph
from flowsched.graph.document import Document, Mark, file_subject, syntax_error
from flowsched.graph.from_document import graph_from_document
from flowsched.replacing import replace_file

GRAPH_SUFFIXES = (".yaml", ".yml", ".json")


def load_graph(path: str | os.PathLike[str]) -> Graph:
    """Load a graph from a ``.yaml``, ``.yml`` or ``.json`` file.

    The file holds what :meth:`Graph.to_dict` returns; fields at their defaults, and ``outputs``, may be left
    out. A whole number may be written ``6`` or ``6.0``, as in JSON Schema. Nothing in a file is executed.

    Raises:
        GraphError: the file cannot be read or is no graph; each problem says ``file:line:column``.
    """
    name = os.fspath(path)
    read = _reader(name)
    return graph_from_document(read(_read_text(name), name))


def save_graph(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Save a graph to a ``.yaml``, ``.yml`` or ``.json`` file, one row a node.

    The file appears whole or not at all: what stood there before stays until all is written.

    Raises:
        GraphError: the suffix is another, or the file cannot be written.
    """
    name = os.fspath(path)
    _check_suffix(name)
    from flowsched.graph.writing import write_json, write_yaml

    text = write_json(graph) if name.endswith(".json") else write_yaml(graph)
    try:
        replace_file(Path(name), text.encode())
    except (OSError, ValueError) as error:
        raise _file_error("cannot-write", name, error) from None


def _reader(name: str) -> Callable[[str, str], Document]:
    _check_suffix(name)
    if name.endswith(".json"):
        from flowsched.graph.json_document import read_json

        return read_json
    from flowsched.graph.yaml_document import read_yaml  # programs without YAML files need no PyYAML

    return read_yaml


def _check_suffix(name: str) -> None:
    if not name.endswith(GRAPH_SUFFIXES):
        message = f"a graph file ends in {', '.join(GRAPH_SUFFIXES)}"
        problem = Problem("unknown-suffix", name, message, "Give the file one of these suffixes")
        raise GraphError(file_subject(name), [problem])


def _read_text(name: str) -> str:
    try:
        data = Path(name).read_bytes()
    except (OSError, ValueError) as error:
        raise _file_error("cannot-read", name, error) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig", errors="replace")
        mark = Mark(name, before.count("\n") + 1, len(before) - before.rfind("\n"))
        raise syntax_error(mark, "UTF-8 text", f"byte 0x{data[error.start]:02x} is not UTF-8") from None


def _file_error(code: str, name: str, error: OSError | ValueError) -> GraphError:
    message = str(getattr(error, "strerror", error)).lower()
    problem = Problem(code, name, message, "Give the path of a file that can be opened")
    return GraphError(file_subject(name), [problem])
