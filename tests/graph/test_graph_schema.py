"""The published JSON Schema says what graph files may hold."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowsched.graph
from flowsched.errors import GraphError
from flowsched.graph.document_keys import NODE_FIELDS
from flowsched.graph.from_document import graph_from_dict
from flowsched.graph.schema import graph_schema

PUBLISHED = Path(flowsched.graph.__file__).parent / "graph.schema.json"
VALIDATOR = jsonschema.Draft202012Validator(graph_schema())
FIELD_CODES = {"wrong-type", "too-small", "too-large", "empty", "bad-name", "unknown-key", "missing-key"}
GOOD: dict[str, Any] = {
    "name": "g",
    "sources": ["x"],
    "nodes": [{"name": "a", "inputs": ["x"]}, {"name": "b", "inputs": ["a"]}],
}


def refused_by_fields(data: object) -> bool:
    """Whether the checks of single fields refuse the data; names and sizes that must fit are not theirs."""
    try:
        graph_from_dict(data, "here")
    except GraphError as error:
        return bool({problem.code for problem in error.problems} & FIELD_CODES)
    return False


def test_the_checked_in_schema_is_the_generated_one() -> None:
    assert json.loads(PUBLISHED.read_text()) == graph_schema(), (
        "the fields changed: write it again with `flowsched schema > flowsched/graph/graph.schema.json`"
    )


def test_the_schema_is_a_valid_schema_with_an_id() -> None:
    jsonschema.Draft202012Validator.check_schema(graph_schema())
    assert graph_schema()["$id"]


def test_every_field_is_described_for_editors() -> None:
    schema = graph_schema()
    for properties in (schema["properties"], schema["$defs"]["Node"]["properties"]):
        for name, rules in properties.items():
            assert len(rules["description"].split()) >= 4, name
            assert "None" not in rules["description"]
    assert tuple(schema["$defs"]["Node"]["properties"]) == NODE_FIELDS


def test_the_schema_accepts_a_graph_with_every_field() -> None:
    full = {
        "$schema": "graph.schema.json",
        "name": "g",
        "sources": ["x"],
        "nodes": [
            {"name": "a", "inputs": ["x"], "replicas": 2.0, "batch_size": 4, "expand": 4, "method": "make"},
            {"name": "b", "inputs": ["a"], "batch_size": None, "replicas_of": "a", "after": ["a"]},
            {"name": "c", "inputs": ["a"], "group": 4, "collapse": 4, "method": None, "replicas_of": None},
        ],
        "outputs": None,
    }
    VALIDATOR.validate(full)
    assert graph_from_dict(full, "here").nodes[0].replicas == 2


_NODE = ("nodes", 0)
_WRONG: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    2**31 - 1,
    2**31,
    10**30,
    "",
    "a b",
    "1a",
    "x",
    [],
    ["x"],
    [3],
    [None],
    {},
    {"name": "a"},
    [["x"]],
    [{}],
]


@pytest.mark.parametrize("value", _WRONG, ids=repr)
@pytest.mark.parametrize(
    "where",
    [
        (),
        ("$schema",),
        ("name",),
        ("sources",),
        ("nodes",),
        _NODE,
        ("outputs",),
        ("other",),
        (*_NODE, "other"),
    ]
    + [(*_NODE, name) for name in NODE_FIELDS],
    ids=str,
)
def test_schema_and_loader_refuse_the_same_values(where: tuple[str | int, ...], value: object) -> None:
    data: Any = deepcopy(GOOD)
    if where:
        holder = data
        for part in where[:-1]:
            holder = holder[part]
        holder[where[-1]] = value
    else:
        data = value
    assert VALIDATOR.is_valid(data) == (not refused_by_fields(data))


@pytest.mark.parametrize(
    "where", [("name",), ("sources",), ("nodes",), (*_NODE, "name"), (*_NODE, "inputs")], ids=str
)
def test_schema_and_loader_miss_the_same_fields(where: tuple[str | int, ...]) -> None:
    data: Any = deepcopy(GOOD)
    holder = data
    for part in where[:-1]:
        holder = holder[part]
    del holder[where[-1]]
    assert VALIDATOR.is_valid(data) == (not refused_by_fields(data))


_SCALARS = (
    st.none() | st.booleans() | st.integers(-2, 3) | st.floats(0, 3) | st.sampled_from(["x", "a", "1a", "é"])
)
_VALUES = st.recursive(_SCALARS, lambda inner: st.lists(inner, max_size=3), max_leaves=4)
_ROWS = st.dictionaries(st.sampled_from([*NODE_FIELDS, "other"]), _VALUES, max_size=4)


@given(
    row=_ROWS,
    graph=st.dictionaries(st.sampled_from(["name", "sources", "outputs", "other"]), _VALUES, max_size=2),
)
@settings(max_examples=300, deadline=None)
def test_schema_and_loader_agree_on_random_rows(row: dict[str, Any], graph: dict[str, Any]) -> None:
    data = {**GOOD, "nodes": [{"name": "a", "inputs": ["x"], **row}], **graph}
    assert VALIDATOR.is_valid(data) == (not refused_by_fields(data))
