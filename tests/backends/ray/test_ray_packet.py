"""Few rows as plain bytes: the same bits, types and shapes, and only what is sure to be as small and as plain."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from flowsched_ray.actor import BRIEF, pack_fragment, unpack_fragment
from flowsched_ray.edge import decode, encode
from flowsched_ray.packet import pack, unpack
from flowsched_ray.piece import Piece, pack_piece, unpack_piece

from flowsched.backend import Seen
from flowsched.batch import structure
from flowsched.testing import assert_same

torch: Any = pytest.importorskip("torch")

HEAD = b"headhead"
NUMPY = [
    np.arange(12).reshape(3, 4),
    np.zeros((0, 3), np.float32),
    np.zeros((3, 0), np.float16),
    np.array([True, False]),
    np.array([1 + 2j, 3]),
    np.arange(24, dtype=np.uint16).reshape(2, 3, 4)[1:],
]
TORCH = ["float32", "bfloat16", "int64", "bool", "complex64", "uint16", "float16"]


@pytest.mark.parametrize("column", NUMPY, ids=lambda column: f"{column.dtype}{column.shape}")
def test_an_array_comes_back_as_it_was_and_aligned(column: Any) -> None:
    packed = pack(HEAD, encode(column))
    assert packed is not None
    assert packed.startswith(HEAD)
    back = decode(unpack(packed, len(HEAD)))
    assert_same(back, column)
    assert back.flags.aligned


@pytest.mark.parametrize("dtype", TORCH)
def test_a_tensor_comes_back_as_it_was_without_a_warning(dtype: str) -> None:
    tensor = torch.arange(16, dtype=torch.uint8).reshape(2, 8)
    tensor = tensor % 2 == 1 if dtype == "bool" else tensor.view(getattr(torch, dtype))
    packed = pack(HEAD, encode(tensor))
    assert packed is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        back = decode(unpack(packed, len(HEAD)))
    assert back.dtype is tensor.dtype
    assert torch.equal(back.view(torch.uint8), tensor.view(torch.uint8))


@pytest.mark.parametrize(
    "batch",
    [
        ["a", "b"],
        {"ids": np.arange(3)},
        np.array(["a", "bc"]),
        np.array([1, None], dtype=object),
        np.array(["2026-01-01"], dtype="datetime64[D]"),
        np.arange(3, dtype=">i4"),
        np.arange(12).reshape(3, 4).T,
        np.zeros(100_000),
    ],
    ids=["list", "dict", "text", "objects", "dates", "swapped", "turned", "large"],
)
def test_what_is_no_single_small_column_of_numbers_is_not_packed(batch: Any) -> None:
    assert pack(HEAD, encode(batch)) is None
    assert_same(decode(unpack_fragment(pack_fragment(encode(batch)))), batch)
    assert_same(decode(unpack_piece(pack_piece(Piece(3, (), encode(batch)))).rows), batch)


def test_a_batch_of_nothing_is_a_head_alone() -> None:
    assert pack(HEAD, None) == HEAD
    assert unpack(HEAD, len(HEAD)) is None
    assert unpack_fragment(BRIEF.pack(0.5, 100)) is None


@pytest.mark.parametrize(
    "rows", [np.arange(4), np.zeros(100_000), ["a"], [[np.arange(2)]], {"x": np.ones(2)}]
)
@pytest.mark.parametrize("is_new", [True, False])
def test_a_piece_is_always_bytes_and_comes_back_as_it_was(rows: Any, is_new: bool) -> None:
    news = ((0, 1, Seen(structure(rows), 5, uneven=False)),) if is_new else ()
    carried = pack_piece(Piece(3, news, encode(rows)))
    assert type(carried) is bytes
    back = unpack_piece(carried)
    assert (back.step, back.news) == (3, news)
    assert_same(decode(back.rows), rows)
