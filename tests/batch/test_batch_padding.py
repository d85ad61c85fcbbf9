"""Declaring padding, padding, and keeping lengths."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from flowsched.batch import BatchError, Padding, concat, padding_of, pads, take, with_lengths

SameBits = Callable[[Any, Any], bool]


@pads(ids=0, mask=Padding(False, side="left"), **{"answer.ids": -100})
class Policy:
    def __init__(self, seed: int = 0) -> None:
        self.seed = seed


@pads(0.5)
def score(batch: Any) -> Any:
    return batch


def test_a_declaration_is_read_from_a_class_a_function_and_partials_of_either() -> None:
    expected = {"ids": Padding(0), "mask": Padding(False, side="left"), "answer.ids": Padding(-100)}
    for model in (
        Policy,
        functools.partial(Policy, seed=1),
        functools.partial(functools.partial(Policy)),
        Policy(),
    ):
        assert dict(padding_of(model)) == expected
    assert dict(padding_of(score)) == {"": Padding(0.5)}
    assert dict(padding_of(functools.partial(score))) == {"": Padding(0.5)}


def test_a_model_that_declares_nothing_has_no_padding() -> None:
    assert dict(padding_of(len)) == {}
    assert dict(padding_of(lambda batch: batch)) == {}
    assert dict(padding_of(functools.partial(len))) == {}


def test_a_partial_can_declare_what_its_function_cannot() -> None:
    with pytest.raises(BatchError, match=r"len cannot hold a declaration.*functools.partial\(len\)"):
        pads(0)(len)
    assert dict(padding_of(pads(1)(functools.partial(len)))) == {"": Padding(1)}
    assert dict(padding_of(pads(1)(functools.partial(score)))) == {"": Padding(1)}


def test_a_subclass_inherits_the_declaration_or_replaces_it() -> None:
    class Same(Policy):
        pass

    @pads(tokens=1)
    class Other(Policy):
        pass

    assert padding_of(Same) is padding_of(Policy)
    assert dict(padding_of(Other)) == {"tokens": Padding(1)}
    assert "ids" in padding_of(Policy)


def test_a_declaration_is_immutable_and_pickles() -> None:
    declared: Any = padding_of(Policy)
    with pytest.raises(TypeError):
        declared["ids"] = Padding(1)
    assert pickle.loads(pickle.dumps(declared)) == declared
    with pytest.raises(AttributeError):
        declared["ids"].value = 3


@pytest.mark.parametrize(
    ("declare", "sentence"),
    [
        (lambda: pads(), "0 bare columns and 0 named"),
        (lambda: pads(0, ids=1), "1 bare columns and 1 named"),
        (lambda: pads(0, 1), "2 bare columns"),
        (lambda: pads(**{"": 0}), "names no column"),
        (lambda: pads(**{"answer.": 0}), "names no column"),
        (lambda: pads(ids=None), "a padding value cannot be None"),  # type: ignore[arg-type]
        (lambda: pads(ids="0"), "a padding value cannot be '0'"),  # type: ignore[arg-type]
        (lambda: Padding(10**400), "a padding value cannot be 1000"),
        (lambda: Padding(0, side="middle"), "a padding side cannot be 'middle'"),  # type: ignore[arg-type]
        (lambda: Padding(0, lengths=""), "lengths cannot be ''"),
        (lambda: pads(Padding(0, lengths="n")), "a bare column has no place for lengths"),
        (lambda: pads(ids=Padding(0, lengths="n"), mask=Padding(0, lengths="n")), "lengths 'n' would be two"),
        (lambda: pads(ids=Padding(0, lengths="mask"), mask=0), "lengths 'mask' would be two"),
        (lambda: pads(ids=Padding(0, lengths="ids")), "lengths 'ids' would be two"),
        (lambda: pads(ids=0)(pads(mask=0)(lambda batch: batch)), "declares padding twice"),
    ],
)
def test_a_declaration_that_cannot_be_is_refused_where_it_is_made(
    declare: Callable[[], Any], sentence: str
) -> None:
    with pytest.raises(BatchError, match=sentence) as caught:
        declare()
    assert caught.value.code == "padding-declaration"


def test_lengths_of_the_same_name_may_stand_in_different_dicts() -> None:
    declare = pads(**{"prompt.ids": Padding(0, lengths="n"), "answer.ids": Padding(0, lengths="n")})
    batch = {"prompt": {"ids": np.zeros((1, 2))}, "answer": {"ids": np.zeros((1, 5))}}
    counted = with_lengths(batch, padding_of(declare(lambda batch: batch)))
    assert (counted["prompt"]["n"].tolist(), counted["answer"]["n"].tolist()) == ([2], [5])


def test_a_numpy_scalar_is_a_padding_value() -> None:
    assert Padding(np.int64(3)) == Padding(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [np.ones, torch.ones])
@pytest.mark.parametrize(
    ("side", "expected"),
    [
        ("right", [[1, 1, 9], [1, 1, 9], [1, 1, 1], [1, 9, 9]]),
        ("left", [[9, 1, 1], [9, 1, 1], [1, 1, 1], [9, 9, 1]]),
    ],
)
def test_rows_are_padded_on_the_declared_side_to_the_widest(make: Any, side: Any, expected: Any) -> None:
    batches = [make((2, 2)), make((1, 3)), make((1, 1))]
    joined = concat(batches, {"": Padding(9, side=side)})
    assert type(joined) is type(batches[0])
    assert joined.dtype == batches[0].dtype
    assert joined.tolist() == expected


@pytest.mark.parametrize("make", [np.ones, torch.ones])
def test_every_axis_but_the_first_is_padded(make: Any) -> None:
    joined = concat([make((1, 1, 3)), make((1, 2, 1))], {"": Padding(0)})
    assert joined.tolist() == [[[1, 1, 1], [0, 0, 0]], [[1, 0, 0], [1, 0, 0]]]


def test_only_columns_that_differ_are_padded_and_the_others_joined_as_ever() -> None:
    batches = [
        {"ids": np.ones((1, width), dtype="i4"), "text": ["a"], "mask": np.ones((1, 2))} for width in (1, 2)
    ]
    joined = concat(batches, {"ids": Padding(-1), "mask": Padding(0)})
    assert joined["ids"].tolist() == [[1, -1], [1, 1]]
    assert joined["mask"].tolist() == [[1, 1], [1, 1]]
    assert joined["text"] == ["a", "a"]


def test_masks_objects_and_rows_of_no_width_are_padded() -> None:
    masks = concat(
        [torch.zeros(1, 0, dtype=torch.bool), torch.zeros(1, 2, dtype=torch.bool)], {"": Padding(True)}
    )
    assert masks.tolist() == [[True, True], [False, False]]
    things = concat([np.array([["a"]], object), np.array([["b", "c"]], object)], {"": Padding(0)})
    assert things.tolist() == [["a", 0], ["b", "c"]]


@pytest.mark.parametrize("make", [np.zeros, torch.zeros])
def test_lengths_are_kept_as_a_sibling_column_of_the_same_kind(make: Any) -> None:
    padding = {"answer.ids": Padding(0, lengths="ids_length")}
    batch = {"answer": {"ids": make((3, 5)), "text": ["a"] * 3}, "score": make(3)}
    counted = with_lengths(batch, padding)
    lengths = counted["answer"]["ids_length"]
    assert type(lengths) is type(batch["score"])
    assert str(lengths.dtype).endswith("int64")
    assert lengths.tolist() == [5, 5, 5]
    assert list(batch["answer"]) == ["ids", "text"]
    assert counted["answer"]["ids"] is batch["answer"]["ids"]
    assert counted["score"] is batch["score"]


def test_lengths_stay_on_the_device_of_their_column() -> None:
    counted = with_lengths({"ids": torch.zeros(1, 2, device="meta")}, {"ids": Padding(0, lengths="n")})
    assert counted["n"].device.type == "meta"


def test_true_lengths_survive_padding_and_cutting() -> None:
    padding = {"ids": Padding(0, lengths="n")}
    batches = [with_lengths({"ids": np.ones((2, width))}, padding) for width in (3, 5)]
    cut = take(concat(batches, padding), 1, 3)
    assert cut["ids"].tolist() == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]
    assert cut["n"].tolist() == [3, 5]


def test_lengths_that_the_worker_returns_are_left_alone() -> None:
    batch = {"ids": np.zeros((2, 5)), "n": [1, 2]}
    assert with_lengths(batch, {"ids": Padding(0, lengths="n")}) is batch


@pytest.mark.parametrize(
    "batch", [None, [1], np.zeros((2, 2)), {}, {"other": [1]}, {"ids": None}, {"a": {"b": [1]}}]
)
def test_nothing_is_added_where_there_is_nothing_to_measure(batch: Any) -> None:
    assert with_lengths(batch, {"ids": Padding(0, lengths="n")}) is batch
    assert with_lengths(batch, {"ids": Padding(0)}) is batch
    assert with_lengths(batch, {}) is batch


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        (np.zeros(2), "'ids' declares lengths and has one axis"),
        ([[1], [2]], "'ids' declares lengths and is a list"),
        ((1, 2), "'ids' is a tuple"),
    ],
)
def test_a_column_without_a_width_cannot_have_lengths(column: Any, sentence: str) -> None:
    with pytest.raises(BatchError, match=sentence):
        with_lengths({"ids": column}, {"ids": Padding(0, lengths="n")})


def test_padding_of_tensors_made_in_inference_mode_works_outside_it(same_bits: SameBits) -> None:
    with torch.inference_mode():
        batches = [torch.ones(1, 1), torch.ones(1, 2)]
    assert same_bits(concat(batches, {"": Padding(0)}), torch.tensor([[1.0, 0.0], [1.0, 1.0]]))
