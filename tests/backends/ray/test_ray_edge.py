"""Columns as they cross between processes: the same bits and types, and no more of them than are sent."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from flowsched_ray.edge import count_bytes, decode, decode_copy, encode, encode_rows

from flowsched.testing import assert_same

torch: Any = pytest.importorskip("torch")


@dataclass(frozen=True)
class Thing:
    """An element that only pickling brings across."""

    name: str


def _crossed(batch: Any) -> Any:
    """Return a batch as another process gets it."""
    return pickle.loads(pickle.dumps(encode(batch), protocol=5))


DTYPES = [
    "float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool",
    "complex64", "complex128", "float8_e4m3fn", "uint16",
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("undo", [decode, decode_copy])
def test_a_tensor_keeps_its_bits_and_its_dtype_without_a_warning(dtype: str, undo: Any) -> None:
    bits = torch.arange(48, dtype=torch.uint8).reshape(3, 16)
    tensor = bits.view(getattr(torch, dtype)) if dtype != "bool" else bits % 2 == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        back = undo(_crossed({"rows": tensor}))["rows"]
    assert back.dtype is tensor.dtype
    assert back.shape == tensor.shape
    assert pickle.dumps(back.view(torch.uint8).numpy()) == pickle.dumps(tensor.view(torch.uint8).numpy())


def test_a_slice_of_a_tensor_takes_no_more_room_than_its_rows() -> None:
    whole = torch.zeros(1_000_000)
    assert len(pickle.dumps(encode_rows(whole, 0, 10), protocol=5)) < 1_000
    assert len(pickle.dumps(encode([whole[:10], whole[5:7]]), protocol=5)) < 2_000


def test_a_tensor_that_is_transposed_conjugated_or_wants_a_gradient_crosses_as_its_values() -> None:
    turned = torch.arange(6.0).reshape(2, 3).T
    assert torch.equal(decode(_crossed(turned)), turned)
    waves = torch.complex(torch.arange(3.0), torch.ones(3)).conj()
    assert torch.equal(decode(_crossed(waves)), waves.resolve_conj())
    wants = torch.ones(3, requires_grad=True)
    assert not decode(_crossed(wants)).requires_grad


@pytest.mark.parametrize(
    "batch",
    [
        None,
        np.zeros((0, 3)),
        np.array(["a", "bc"]),
        np.array([1, "a", None], dtype=object),
        np.arange(12).reshape(3, 4).T,
        [],
        ["text", None, 3.5],
        [[1, 2], [3], []],
        [np.arange(2), np.arange(3)],
        [{"a": [1]}, {"a": (2, 3)}],
        [Thing("a"), Thing("b")],
        [[Thing("a")], [np.array([Thing("b")])]],
        {"a": {"b": np.ones(2), "none": None, "empty": {}}, "c": ["x", "y"]},
    ],
)
@pytest.mark.parametrize("undo", [decode, decode_copy])
def test_what_crosses_comes_back_as_it_was(batch: Any, undo: Any) -> None:
    back = undo(_crossed(batch))
    assert type(back) is type(batch)
    assert_same(back, batch)


def test_plain_nested_lists_are_not_pickled_twice() -> None:
    ragged = [[1, 2], [3], []]
    assert encode(ragged) is ragged


def test_a_copy_shares_no_memory_with_what_crossed() -> None:
    array, tensor = np.arange(4), torch.arange(4)
    assert not np.shares_memory(decode_copy(encode(array)), array)
    assert decode_copy(encode(tensor)).data_ptr() != tensor.data_ptr()
    assert decode(encode(tensor)).data_ptr() == tensor.data_ptr()


def test_bytes_are_counted_over_all_columns() -> None:
    batch = {"a": np.zeros((4, 2)), "b": {"c": torch.zeros(4, dtype=torch.int16)}, "none": None}
    assert count_bytes(batch) == 64 + 8
    assert 100_000 < count_bytes(["x" * 1_000] * 100) < 120_000
    assert count_bytes([np.zeros(10)] * 3) == 240
