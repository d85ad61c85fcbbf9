"""The pydantic models at the graph's edges: what each field may hold, and the published JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, fields
from inspect import cleandoc
from typing import Annotated, Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from flowsched.graph.declaration import Graph, Name, Node

SCHEMA_ID = "urn:flowsched:schema:graph:1"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_STRICT = ConfigDict(strict=True, extra="forbid")
_ATTRIBUTE = re.compile(r"^    (\w+): (.+(?:\n {5}.+)*)", re.MULTILINE)


def graph_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of graph files, YAML and JSON alike.

    It accepts exactly what the checks of single fields accept. What spans several fields (names that must
    exist, cycles, sizes that must fit) is beyond it.

    >>> graph_schema()["properties"]["nodes"]["items"]
    {'$ref': '#/$defs/Node'}
    """
    schema = GraphFields.model_json_schema()
    node = schema["$defs"]["Node"]
    address = {"type": "string", "description": "address of this schema, for editors; no part of the graph."}
    return {
        "$schema": _DIALECT,
        "$id": SCHEMA_ID,
        "title": "flowsched graph",
        "description": _summary_of(Graph),
        "type": "object",
        "additionalProperties": False,
        "required": schema["required"],
        "properties": {"$schema": address, **_tidied(schema["properties"])},
        "$defs": {
            "Node": {
                **node,
                "description": _summary_of(Node),
                "properties": _tidied(node["properties"]) | {"inputs": _inputs_of(node)},
                "required": [*node["required"], "inputs"],
            },
        },
    }


def _inputs_of(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rules of a node's inputs: a node without any is refused, though as a whole and not by field."""
    rules = {
        key: value for key, value in node["properties"]["inputs"].items() if key not in ("default", "title")
    }
    return {**rules, "minItems": 1}


def _model_of(declared: type[Graph] | type[Node], replaced: Mapping[str, tuple[Any, Any]]) -> type[BaseModel]:
    """Return a pydantic model with the fields, types, defaults and descriptions of a declared dataclass."""
    hints = get_type_hints(declared, include_extras=True)
    said = _descriptions_in(declared)
    rows: dict[str, Any] = {}
    for field in fields(declared):
        if field.init:
            default = ... if field.default is MISSING else field.default
            hint, default = replaced.get(field.name, (hints[field.name], default))
            rows[field.name] = (hint, Field(default, description=said.get(field.name)))
    return create_model(declared.__name__, __config__=_STRICT, **rows)


def _summary_of(declared: type) -> str:
    summary, *_ = cleandoc(declared.__doc__ or "").partition("\n")
    return summary


def _descriptions_in(declared: type) -> dict[str, str]:
    """Return what the docstring of a class says of each attribute, in the words of graph files."""
    _, _, attributes = cleandoc(declared.__doc__ or "").partition("Attributes:\n")
    plain = re.sub(r"\bNone\b", "null", attributes.replace("``", "`"))
    return {name: " ".join(text.split()) for name, text in _ATTRIBUTE.findall(plain)}


def _tidied(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return properties without the titles that repeat their names."""
    return {
        name: {key: value for key, value in rules.items() if key != "title"}
        for name, rules in properties.items()
    }


NodeFields = _model_of(Node, {})
_Names = Annotated[tuple[Name, ...], Field(min_length=1)]
_Nodes = Annotated[tuple[NodeFields, ...], Field(min_length=1)]  # type: ignore[valid-type]
GraphFields = _model_of(Graph, {"nodes": (_Nodes, ...), "outputs": (_Names | None, None)})
