"""Values of any type in any place are refused as what they are, in a sentence, and never fail raw."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowsched as fs
from flowsched.errors import FlowschedError, GraphError
from flowsched.graph.declaration import Node
from flowsched.graph.document_keys import NODE_FIELDS


class _ComparesToNothing:
    def __eq__(self, other: object) -> bool:
        raise TypeError("these do not compare")

    __hash__ = None  # type: ignore[assignment]


_SIZE = 3
_ODD: list[Any] = [
    np.array(["x"]),
    np.array(["x", "y"]),
    np.array([]),
    np.arange(3),
    _ComparesToNothing(),
    {"x": 1},
    {"x"},
    _SIZE,
    b"x",
    10**5000,
]
_IDS = ["array", "arrays", "no array", "numbers", "compares to nothing", "dict", "set", "3", "bytes", "huge"]


@pytest.mark.parametrize("odd", _ODD, ids=_IDS)
@pytest.mark.parametrize("field", ["name", "sources", "nodes", "outputs"])
def test_a_field_of_a_graph_of_an_odd_type_is_refused_with_its_name(field: str, odd: Any) -> None:
    given = {"name": "g", "sources": ["x"], "nodes": [fs.Node("a", inputs=["x"])], "outputs": ["a"]}
    with pytest.raises(GraphError, match=field):
        fs.Graph(**{**given, field: odd})


@pytest.mark.parametrize("odd", _ODD, ids=_IDS)
@pytest.mark.parametrize("field", NODE_FIELDS)
def test_a_field_of_a_node_of_an_odd_type_is_refused_with_its_name(field: str, odd: Any) -> None:
    if odd is _SIZE and field in ("replicas", "batch_size", "expand", "group", "collapse"):
        odd = -_SIZE
    node = fs.Node(**{"name": "a", "inputs": ["x"], field: odd})
    with pytest.raises(GraphError, match=field):
        fs.Graph("g", sources=["x"], nodes=[node])


@pytest.mark.parametrize("odd", _ODD[:-1], ids=_IDS[:-1])
@pytest.mark.parametrize("field", NODE_FIELDS[1:])
def test_a_node_prints_whatever_it_holds(field: str, odd: Any) -> None:
    assert f"{field}=" in repr(Node("a", **{field: odd}))


GRAPH = fs.Graph("g", sources=["x"], nodes=[fs.Node("a", inputs=["x"], batch_size=2)])
PLAN = fs.compile(GRAPH, samples=8)


@pytest.mark.parametrize(
    "odd", [0, -1, None, [], {}, ("a",), np.array(["a"]), slice(0, 1), "b", ""], ids=repr
)
def test_what_is_no_name_of_a_node_is_not_in_a_graph_or_plan_and_is_said_to_be_none(odd: Any) -> None:
    assert odd not in GRAPH
    for look in (GRAPH.__getitem__, PLAN.__getitem__, GRAPH.index, GRAPH.owner):
        with pytest.raises(GraphError, match="Known nodes: a"):
            look(odd)


@pytest.mark.parametrize(
    "question",
    [
        {"limit": "x"},
        {"limit": 2.5},
        {"limit": True},
        {"limit": [3]},
        {"limit": -(10**5000)},
        {"edge": (["a"], "b")},
        {"edge": (np.array(["x", "y"]), "a")},
        {"edge": ("x", np.array(["a", "b"]))},
        {"edge": ("x", None)},
        {"edge": 3},
        {"edge": {"x": "a"}},
        {"node": ["a"]},
        {"node": np.array(["x", "y"])},
        {"node": 10**5000},
        {"replica": "a." + "9" * 5000},
        {"replica": ("a", 10**5000)},
        {"replica": (["a"], 0)},
        {"replica": np.array([0, 1])},
        {"sample": 10**5000},
        {"sample": np.array([0, 1])},
        {"sample": "1"},
    ],
    ids=lambda question: f"{next(iter(question))} {type(next(iter(question.values()))).__name__}",
)
def test_an_odd_question_about_a_plan_is_refused_in_a_short_sentence(question: Any) -> None:
    with pytest.raises(FlowschedError) as caught:
        PLAN.explain(**question)
    assert len(str(caught.value)) < 400


def test_the_limit_may_be_a_number_of_any_integer_type() -> None:
    assert str(PLAN.explain(node="a", limit=np.int64(3))) == str(PLAN.explain(node="a", limit=3))  # type: ignore[arg-type]


def test_the_calls_of_a_node_are_taken_by_number_or_sliced() -> None:
    calls = PLAN["a"]
    assert [str(call) for call in calls[1:3]] == [str(calls[1]), str(calls[2])]
    assert calls[::-1] == list(calls)[::-1]
    assert calls[-1] == list(calls)[-1]
    assert calls[4:] == []
    with pytest.raises(IndexError):
        calls[4]
