"""Counting, cutting and spreading rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from flowsched.batch import BatchError, count_rows, spread, take

SameBits = Callable[[Any, Any], bool]


@pytest.mark.parametrize("batch", [None, {}, {"a": None}, {"a": {"b": None}, "c": {}}])
def test_a_batch_without_a_column_has_no_number_of_rows_and_passes_through(batch: Any) -> None:
    assert count_rows(batch) is None
    assert take(batch, 3, 9) is batch
    assert spread(batch, 3, 9, times=2) is batch


def test_no_rows_are_zero_rows() -> None:
    assert count_rows([]) == 0
    assert count_rows({"a": np.zeros((0, 3)), "b": torch.zeros(0)}) == 0
    assert count_rows(np.zeros((0,))) == 0


def test_columns_that_disagree_are_named_with_their_rows() -> None:
    batch = {"ids": np.zeros(8), "mask": torch.zeros(4), "answer": {"text": ["a"] * 8}, "none": None}
    with pytest.raises(BatchError) as caught:
        count_rows(batch)
    assert "columns disagree on rows: 'ids' has 8, 'mask' has 4, 'answer.text' has 8" in str(caught.value)
    assert (caught.value.code, caught.value.column) == ("rows-disagree", "mask")


def test_rows_taken_of_arrays_and_tensors_are_views_and_of_lists_the_same_elements() -> None:
    elements = [object() for _ in range(6)]
    batch: Any = {"array": np.arange(12).reshape(6, 2), "deep": {"tensor": torch.arange(6)}, "list": elements}
    taken = take(batch, 2, 5)
    assert np.shares_memory(taken["array"], batch["array"])
    assert taken["array"].tolist() == [[4, 5], [6, 7], [8, 9]]
    assert taken["deep"]["tensor"].data_ptr() == batch["deep"]["tensor"][2:].data_ptr()
    assert taken["deep"]["tensor"].tolist() == [2, 3, 4]
    assert all(one is other for one, other in zip(taken["list"], elements[2:5], strict=True))
    assert batch["list"] is elements
    assert len(elements) == 6


def test_a_taken_array_keeps_its_order_its_dtype_and_its_protection() -> None:
    array = np.asfortranarray(np.arange(12, dtype=">i2").reshape(6, 2))
    array.flags.writeable = False
    taken = take(array, 1, 4)
    assert taken.dtype == np.dtype(">i2")
    assert taken.strides == array.strides
    assert not taken.flags.writeable


def test_a_taken_tensor_keeps_its_autograd_graph() -> None:
    weights = torch.ones(4, requires_grad=True)
    take({"w": weights}, 1, 3)["w"].sum().backward()
    assert weights.grad is not None
    assert weights.grad.tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize("batch", [np.zeros(3), torch.zeros(3), [1, 2, 3], {"a": {"b": [1, 2, 3]}}])
def test_all_rows_are_the_very_same_batch(batch: Any) -> None:
    assert take(batch, 0, 3) is batch
    assert spread(batch, 0, 3, times=1) is batch


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (0, 5), (3, 2), (5, 5)])
def test_rows_outside_the_batch_are_refused_not_clipped(start: int, stop: int) -> None:
    with pytest.raises(
        BatchError, match=rf"rows \[{start}, {stop}\) were asked of a batch of 4 rows"
    ) as caught:
        take({"a": np.zeros(4)}, start, stop)
    assert caught.value.code == "rows-range"
    with pytest.raises(BatchError, match="of a batch of 4 rows"):
        spread(np.zeros(2), start, stop, times=2)


def test_columns_that_disagree_are_not_cut() -> None:
    with pytest.raises(BatchError, match="columns disagree on rows"):
        take({"a": [1, 2, 3], "b": [1, 2]}, 0, 2)
    with pytest.raises(BatchError, match="columns disagree on rows"):
        spread({"a": [1, 2, 3], "b": [1, 2]}, 0, 2, times=2)


@pytest.mark.parametrize("times", [0, -2])
def test_rows_are_spread_at_least_once(times: int) -> None:
    with pytest.raises(BatchError, match=f"cannot be spread {times} times"):
        spread([1], 0, 0, times=times)


def test_every_finer_range_holds_the_row_that_it_stands_for(same_bits: SameBits) -> None:
    batch = {
        "array": np.arange(6, dtype=np.float32).reshape(3, 2),
        "text": np.array(["a", "bb", "ccc"]),
        "tensor": torch.arange(3, dtype=torch.bfloat16),
        "mask": torch.tensor([True, False, True]),
        "list": [object(), object(), object()],
        "none": None,
    }
    for start in range(13):
        for stop in range(start, 13):
            finer = spread(batch, start, stop, times=4)
            assert count_rows(finer) == stop - start
            assert finer["none"] is None
            for row in range(start, stop):
                coarse = row // 4
                one = take(finer, row - start, row - start + 1)
                assert same_bits(one, take(batch, coarse, coarse + 1))


def test_spread_rows_do_not_share_memory_with_each_other() -> None:
    for column in (np.zeros((2, 2)), torch.zeros(2, 2)):
        for start, stop in ((0, 4), (1, 4)):
            finer = spread(column, start, stop, times=2)
            finer[0] += 1
            assert float(finer[1:].sum()) == 0
            assert float(column.sum()) == 0


def test_spreading_allocates_no_more_than_its_result() -> None:
    finer = spread(np.zeros((10, 5)), 3, 28, times=3)
    assert finer.base is None
    assert finer.shape == (25, 5)
    tensor = spread(torch.zeros(10, 5), 3, 28, times=3)
    assert tensor.untyped_storage().nbytes() == 25 * 5 * 4


def test_a_spread_tensor_keeps_its_autograd_graph() -> None:
    weights = torch.ones(3, requires_grad=True)
    spread(weights, 1, 8, times=3).sum().backward()
    assert weights.grad is not None
    assert weights.grad.tolist() == [2, 3, 2]


def test_spreading_keeps_byte_order_and_records(same_bits: SameBits) -> None:
    records = np.zeros(2, dtype=np.dtype([("a", "i1"), ("b", ">f8")], align=True))
    records["b"] = [1.5, 2.5]
    assert spread(records, 1, 4, times=2)["b"].tolist() == [1.5, 2.5, 2.5]
    assert spread(records, 0, 4, times=2).dtype == records.dtype
    assert same_bits(spread(np.array([1, 2], ">i4"), 0, 4, times=2), np.array([1, 1, 2, 2], ">i4"))
