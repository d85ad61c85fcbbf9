"""Joining batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from flowsched.batch import BatchError, Padding, concat

SameBits = Callable[[Any, Any], bool]


def test_one_batch_is_returned_as_it_is() -> None:
    for batch in (np.zeros(2), {"a": [1]}, None):
        assert concat([batch]) is batch


def test_no_batches_cannot_be_joined() -> None:
    with pytest.raises(BatchError, match="no batches to join"):
        concat([])


def test_rows_come_in_sequence_in_every_column() -> None:
    joined = concat(
        [
            {"a": np.array([1, 2]), "b": {"c": ["x", "y"], "d": torch.tensor([1, 2])}, "e": None, "f": {}},
            {"a": np.array([3]), "b": {"c": ["z"], "d": torch.tensor([3])}, "e": None, "f": {}},
        ]
    )
    assert joined["a"].tolist() == [1, 2, 3]
    assert joined["b"]["c"] == ["x", "y", "z"]
    assert joined["b"]["d"].tolist() == [1, 2, 3]
    assert joined["e"] is None
    assert joined["f"] == {}


def test_batches_without_columns_join_to_one_without() -> None:
    assert concat([None, None]) is None
    assert concat([{"a": None}, {"a": None}]) == {"a": None}


def test_keys_may_come_in_any_order() -> None:
    joined = concat([{"a": [1], "b": [2]}, {"b": [4], "a": [3]}])
    assert list(joined.items()) == [("a", [1, 3]), ("b", [2, 4])]


def test_joining_leaves_the_batches_alone() -> None:
    first, second = {"a": [1]}, {"a": [2]}
    concat([first, second])["a"].append(3)
    assert (first, second) == ({"a": [1]}, {"a": [2]})


@pytest.mark.parametrize(
    "dtype",
    [
        ">i4",
        ">f8",
        ">U3",
        "<M8[s]",
        "m8[D]",
        "S4",
        "V3",
        "c16",
        "?",
        np.dtype([("a", "i1"), ("b", ">f8")], align=True),
        np.dtype({"names": ["a"], "formats": ["i4"], "offsets": [4], "itemsize": 16}),
    ],
    ids=str,
)
def test_the_dtype_of_an_array_stays_what_it_was(dtype: Any) -> None:
    array = np.zeros((2, 3), dtype=dtype)
    assert concat([array, array[:1]]).dtype == array.dtype


def test_text_of_different_widths_takes_the_widest() -> None:
    joined = concat([np.array(["a", "bb"]), np.array(["cccc"]), np.array([], dtype="U1")])
    assert joined.tolist() == ["a", "bb", "cccc"]
    assert joined.dtype == np.dtype("U4")
    assert concat([np.array([b"a"]), np.array([b"bb"])]).tolist() == [b"a", b"bb"]


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="numpy 2 brought text of variable width")
def test_text_of_variable_width_is_joined() -> None:
    text = np.array(["a", "bb"], dtype=np.dtypes.StringDType())
    assert concat([text, text]).tolist() == ["a", "bb", "a", "bb"]


def test_a_record_array_stays_one() -> None:
    records = np.rec.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])
    assert concat([records, records]).a.tolist() == [1, 1]


@pytest.mark.parametrize(
    "dtype",
    [
        torch.bfloat16,
        torch.float16,
        torch.bool,
        torch.uint8,
        torch.int64,
        torch.complex64,
        torch.uint16,
        torch.float8_e4m3fn,
    ],
    ids=str,
)
def test_the_dtype_of_a_tensor_stays_what_it_was(dtype: torch.dtype, same_bits: SameBits) -> None:
    tensor = torch.arange(6).to(dtype).reshape(3, 2)
    assert same_bits(concat([tensor[:1], tensor[1:]]), tensor)


def test_joined_tensors_keep_their_autograd_graph_padded_or_not() -> None:
    first, second = torch.ones(2, 2, requires_grad=True), torch.ones(1, 3, requires_grad=True)
    (concat([first, first]) * 2).sum().backward()
    assert first.grad is not None
    assert first.grad.tolist() == [[4, 4], [4, 4]]
    (concat([first, second], {"": Padding(7)}) * 3).sum().backward()
    assert first.grad.tolist() == [[7, 7], [7, 7]]
    assert second.grad is not None
    assert second.grad.tolist() == [[3, 3, 3]]


@pytest.mark.parametrize(
    ("first", "second", "code", "column", "sentence"),
    [
        ({"a": [1], "b": [1]}, {"a": [1]}, "keys-changed", "b", "column 'b' is gone"),
        ({"a": [1]}, {"a": [1], "b": [1]}, "keys-changed", "b", "column 'b' is new: a list"),
        ({"a": [1]}, {"a": np.ones(1)}, "column-changed", "a", "was a list and is a numpy array of float64"),
        ({"a": np.ones(1)}, {"a": torch.ones(1)}, "column-changed", "a",
         "was a numpy array of float64 with 1 axis and is a torch tensor of float32 with 1 axis"),
        ({"a": {"b": np.ones(1, "i4")}}, {"a": {"b": np.ones(1, "i8")}}, "column-changed", "a.b",
         "column 'a.b' was a numpy array of int32 with 1 axis and is a numpy array of int64 with 1 axis"),
        (np.ones((1, 2)), np.ones(1), "column-changed", "",
         "the batch was a numpy array of float64 with 2 axes and is a numpy array of float64 with 1 axis"),
        (torch.ones(1), torch.ones(1, dtype=torch.bfloat16), "column-changed", "", "tensor of bfloat16"),
        ({"a": None}, {"a": [1]}, "column-changed", "a", "column 'a' was None and is a list"),
        (None, {"a": [1]}, "keys-changed", "", "the batch was None and is a dict of 'a'"),
        ([1], {"a": [1], "b": {"c": [1]}}, "keys-changed", "", "was a list and is a dict of 'a', 'b.c'"),
        ({"a": {"b": [1]}}, {"a": [1]}, "keys-changed", "a", "column 'a' was a dict of 'a.b' and is a list"),
        ({"a": {}}, {"a": {"b": [1]}}, "keys-changed", "a", "'a' was an empty dict and is a dict of 'a.b'"),
        (np.array(["a"]), np.array([b"a"]), "column-changed", "",
         "array of str with 1 axis and is a numpy array of bytes"),
        (np.array(["a"], "<U1"), np.array(["a"], ">U1"), "column-changed", "", "array of >U with 1 axis"),
    ],
)  # fmt: skip
def test_batches_of_different_structure_do_not_meet(
    first: Any, second: Any, code: str, column: str, sentence: str
) -> None:
    with pytest.raises(BatchError) as caught:
        concat([first, first, second])
    assert str(caught.value).startswith("batches 0 and 2 do not fit together: ")
    assert sentence in caught.value.problem
    assert (caught.value.code, caught.value.column) == (code, column)


def test_all_changes_are_told_at_once() -> None:
    with pytest.raises(
        BatchError, match="column 'a' is gone; column 'b' was a list and is None; column 'c' is new"
    ):
        concat([{"a": [1], "b": [1]}, {"b": None, "c": [1]}])


def test_a_path_and_a_key_with_a_dot_are_two_things() -> None:
    with pytest.raises(BatchError) as caught:
        concat([{"a.b": [1]}, {"a": {"b": [1]}}])
    assert caught.value.code == "keys-changed"


def test_tensors_on_different_devices_do_not_meet() -> None:
    with pytest.raises(BatchError, match="column 'a' was on cpu and is on meta") as caught:
        concat([{"a": torch.ones(1)}, {"a": torch.ones(1, device="meta")}])
    assert caught.value.code == "device-changed"


def test_columns_cut_at_different_rows_do_not_meet_as_if_they_were_aligned() -> None:
    with pytest.raises(BatchError, match="'a' has 1, 'b' has 2"):
        concat([{"a": [1], "b": [1, 2]}, {"a": [2, 3], "b": [3]}])


@pytest.mark.parametrize("make", [np.ones, torch.ones])
def test_rows_of_different_shapes_do_not_meet_unless_padding_is_declared(make: Any) -> None:
    batches = [{"answer": {"ids": make((2, width))}} for width in (7, 7, 9)]
    with pytest.raises(BatchError) as caught:
        concat(batches, {"answer.idz": Padding(0)})
    assert str(caught.value) == (
        "column 'answer.ids' has rows of shape (7,) in batch 0 and (9,) in batch 2, and padding is declared "
        "for 'answer.idz' only. Declare its padding on the model, e.g. @pads(**{'answer.ids': 0}), or return "
        "rows of one shape from every call"
    )
    assert (caught.value.code, caught.value.column) == ("trailing-shape", "answer.ids")


def test_empty_batches_keep_their_shape_and_join() -> None:
    joined = concat([np.zeros((0, 3)), np.ones((2, 3)), np.zeros((0, 3))])
    assert joined.tolist() == [[1, 1, 1], [1, 1, 1]]
    assert concat([np.zeros((0, 3)), np.zeros((0, 3))]).shape == (0, 3)
    assert concat([torch.zeros((0, 3)), torch.zeros((0, 3))]).shape == (0, 3)
    with pytest.raises(BatchError, match=r"\(3,\) in batch 0 and \(4,\) in batch 1"):
        concat([torch.zeros((0, 3)), torch.ones((1, 4))])
