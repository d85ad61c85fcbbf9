"""The pydantic models at the graph's edges: what each field may hold, and the published JSON Schema."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, create_model

from flowsched.graph.declaration import Graph, Node

_STRICT = ConfigDict(strict=True, extra="forbid")


def _model_of(declared: type[Graph] | type[Node], replaced: dict[str, Any]) -> type[BaseModel]:
    """Return a pydantic model with the fields, types and defaults of a declared dataclass."""
    hints = get_type_hints(declared, include_extras=True)
    rows: dict[str, Any] = {
        field.name: (
            replaced.get(field.name, hints[field.name]),
            ... if field.default is MISSING else field.default,
        )
        for field in fields(declared)
        if field.init
    }
    return create_model(f"{declared.__name__}Fields", __config__=_STRICT, **rows)


NodeFields = _model_of(Node, {})
GraphFields = _model_of(Graph, {"nodes": tuple[NodeFields, ...]})  # type: ignore[valid-type]
