"""A graph as the text of a graph file: one row a node, its fields in columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yaml

from flowsched.graph.declaration import Graph

_Scalar = Callable[[Any], str]
_STRING = "tag:yaml.org,2002:str"
_RESOLVER: Any = yaml.resolver.Resolver()


def write_json(graph: Graph) -> str:
    """Return the graph as JSON."""
    data = graph.to_dict()
    lines = [
        f'  "name": {json.dumps(data["name"])},',
        f'  "sources": {json.dumps(data["sources"])},',
        '  "nodes": [',
        ",\n".join(f"    {row}" for row in _aligned(data["nodes"], json.dumps, json.dumps)),
        "  ],",
        f'  "outputs": {json.dumps(data["outputs"])}',
    ]
    return "\n".join(["{", *lines, "}", ""])


def write_yaml(graph: Graph) -> str:
    """Return the graph as YAML."""
    data = graph.to_dict()
    lines = [
        f"name: {_yaml_scalar(data['name'])}",
        f"sources: {_cell(data['sources'], _yaml_scalar)}",
        "nodes:",
        *(f"  - {row}" for row in _aligned(data["nodes"], str, _yaml_scalar)),
        f"outputs: {_cell(data['outputs'], _yaml_scalar)}",
    ]
    return "\n".join([*lines, ""])


def _aligned(rows: Sequence[Mapping[str, Any]], key: _Scalar, scalar: _Scalar) -> list[str]:
    """Return one line a row, ``{key: value, ...}``, with equal keys below each other."""
    cells = [{name: f"{key(name)}: {_cell(value, scalar)}" for name, value in row.items()} for row in rows]
    widths: dict[str, int] = {}
    for row in cells:
        for name, cell in row.items():
            widths[name] = max(widths.get(name, 0), len(cell))
    return [_aligned_row(row, widths) for row in cells]


def _aligned_row(row: Mapping[str, str], widths: dict[str, int]) -> str:
    text = ""
    last = next(name for name in reversed(widths) if name in row)
    for name, width in widths.items():
        if name == last:
            return f"{{{text}{row[name]}}}"
        text += f"{row[name]},".ljust(width + 2) if name in row else " " * (width + 2)
    return text


def _cell(value: object, scalar: _Scalar) -> str:
    return f"[{', '.join(map(scalar, value))}]" if isinstance(value, list) else scalar(value)


def _yaml_scalar(value: object) -> str:
    """Return a name or number in YAML; names that would read as something else, such as no, get quotes."""
    if not isinstance(value, str):
        return str(value)
    return value if _RESOLVER.resolve(yaml.ScalarNode, value, (True, False)) == _STRING else json.dumps(value)
