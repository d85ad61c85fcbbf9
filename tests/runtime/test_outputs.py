"""What a step returns joins lazily, streams in pieces, and names what it has."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import flowsched as fs
from flowsched import batch
from flowsched.runtime import outputs as module
from flowsched.runtime.outputs import Outputs, UnknownOutputError

PIECES: list[Any] = [np.arange(3), np.arange(2), np.arange(4)]


@pytest.fixture
def joins(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Number of pieces of each join that has been made."""
    made: list[int] = []

    def counted(pieces: Any, padding: Any = None) -> Any:
        made.append(len(pieces))
        return batch.concat(pieces, padding)

    monkeypatch.setattr(module, "concat", counted)
    return made


def test_an_output_is_joined_when_it_is_first_asked_for_and_once(joins: list[int]) -> None:
    out = Outputs({"a": PIECES, "b": PIECES}, {"a": {}, "b": {}})
    assert (len(out), list(out), "a" in out, "c" in out, repr(out)) == (
        2,
        ["a", "b"],
        True,
        False,
        "<Outputs a: 9 rows, b: 9 rows>",
    )
    assert joins == []
    assert out["a"] is out["a"]
    assert out["a"].tolist() == [0, 1, 2, 0, 1, 0, 1, 2, 3]
    assert joins == [3]
    assert repr(out) == "<Outputs a: 9 rows, b: 9 rows>"


def test_pieces_are_the_batches_of_the_calls_themselves(joins: list[int]) -> None:
    out = Outputs({"a": PIECES}, {"a": {}})
    assert all(one is other for one, other in zip(out.pieces("a"), PIECES, strict=True))
    assert joins == []


def test_an_output_of_one_call_is_its_batch_itself() -> None:
    assert Outputs({"a": PIECES[:1]}, {"a": {}})["a"] is PIECES[0]


def test_pieces_of_different_widths_are_padded_as_declared() -> None:
    out = Outputs({"a": [np.ones((1, 1), int), np.ones((1, 2), int)]}, {"a": {"": fs.Padding(7)}})
    assert out["a"].tolist() == [[1, 7], [1, 1]]


def test_an_output_of_no_calls_is_an_empty_list_and_one_without_batches_none() -> None:
    out = Outputs({"a": [], "b": [None, None]}, {"a": {}, "b": {}})
    assert out["a"] == []
    assert out["b"] is None
    assert out.pieces("a") == ()
    assert repr(out) == "<Outputs a: 0 rows, b: None>"


@pytest.mark.parametrize("ask", [lambda out: out["rewrd"], lambda out: out.pieces("rewrd")])
def test_an_unknown_output_is_told_with_the_one_that_was_meant(ask: Any) -> None:
    with pytest.raises(UnknownOutputError) as caught:
        ask(Outputs({"reward": PIECES, "value": PIECES}, {"reward": {}, "value": {}}))
    expected = "'rewrd' is no output. Did you mean 'reward'? Known outputs: reward, value"
    assert str(caught.value) == str(pickle.loads(pickle.dumps(caught.value))) == expected


def test_asking_as_of_a_dict_works() -> None:
    out = Outputs({"a": PIECES}, {"a": {}})
    assert out.get("b") is None
    assert out.get("b", 3) == 3
    assert dict(out)["a"] is out["a"]
    with pytest.raises(KeyError):
        out["b"]
    with pytest.raises(TypeError):
        out["b"] = 1  # type: ignore[index]


def test_a_node_that_is_no_output_is_told_with_how_to_make_it_one() -> None:
    out = Outputs({"reward": PIECES}, {"reward": {}}, ["policy", "reward"])
    with pytest.raises(UnknownOutputError, match=r"name it in Graph\(outputs=\['reward', 'policy'\]\)"):
        out["policy"]
