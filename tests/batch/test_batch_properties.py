"""What holds for any batch and any cut."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from flowsched.batch import (
    Padding,
    concat,
    count_rows,
    differences,
    spread,
    structure,
    take,
    with_lengths,
)

SameBits = Callable[[Any, Any], bool]
Generator = np.random.Generator

RECORD = np.dtype([("a", "i1"), ("b", ">f8"), ("c", "U2")], align=True)
ARRAY_DTYPES = ["f8", "f4", "f2", ">i4", "u1", "M8[ns]", "c8", "S3", "V5"]
TENSOR_DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.uint8, torch.complex64]


def _any_bits(shape: tuple[int, ...], dtype: str, rng: Generator) -> np.ndarray[Any, Any]:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.ndarray(shape, dtype=dtype, buffer=rng.bytes(size))  # read-only; NaNs of every payload


def _array(rows: int, trailing: tuple[int, ...], rng: Generator) -> Any:
    shape = (rows, *trailing)
    form = rng.integers(5)
    if form == 0:
        return _any_bits(shape, rng.choice(ARRAY_DTYPES), rng)
    if form == 1:
        return np.asfortranarray(_any_bits(shape, rng.choice(ARRAY_DTYPES), rng))
    if form == 2:
        return _any_bits((rows * 2, *trailing), "f8", rng)[::-2]
    if form == 3:
        return np.array([object() for _ in range(int(np.prod(shape)))], dtype=object).reshape(shape)
    records = np.zeros(shape, dtype=RECORD)
    records["b"], records["c"] = rng.normal(size=shape), "é"
    return records


def _tensor(rows: int, trailing: tuple[int, ...], rng: Generator) -> Any:
    if rng.integers(4) == 0:
        return torch.from_numpy(rng.random((*trailing, rows)) < 0.5).movedim(-1, 0)
    dtype = TENSOR_DTYPES[rng.integers(len(TENSOR_DTYPES))]
    tensor = torch.empty((rows, *trailing), dtype=dtype)
    bits = torch.from_numpy(rng.integers(256, size=tensor.nbytes, dtype=np.uint8))
    tensor.untyped_storage().copy_(bits.untyped_storage())
    return tensor


def _list(rows: int, trailing: tuple[int, ...], rng: Generator) -> Any:
    return [["ragged"] * int(rng.integers(4)) if trailing else f"text {row}" for row in range(rows)]


@st.composite
def batches(draw: st.DrawFn, max_rows: int = 9) -> Any:
    rows = draw(st.integers(0, max_rows))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    trailing = st.lists(st.integers(0, 3), max_size=2).map(tuple)
    makers: st.SearchStrategy[Callable[..., Any]] = st.sampled_from([_array, _tensor, _list])
    column = st.builds(lambda make, shape: make(rows, shape, rng), makers, trailing)
    keys = st.sampled_from(["ids", "mask", "text", "a.b", "é"])
    nested = st.recursive(
        column | st.none(), lambda leaf: st.dictionaries(keys, leaf, max_size=3), max_leaves=5
    )
    return draw(st.dictionaries(keys, nested, min_size=1, max_size=3) | column)


def _cut_points(data: st.DataObject, rows: int) -> list[int]:
    inner = data.draw(st.lists(st.integers(0, rows), max_size=4))
    return [0, *sorted(inner), rows]


@settings(deadline=None, max_examples=150)
@given(batch=batches(), data=st.data())
def test_joining_the_pieces_of_a_batch_gives_the_batch_bit_for_bit(
    batch: Any, data: st.DataObject, same_bits: SameBits
) -> None:
    cuts = _cut_points(data, count_rows(batch) or 0)
    pieces = [take(batch, start, stop) for start, stop in pairwise(cuts)]
    assert same_bits(concat(pieces), batch)


@settings(deadline=None, max_examples=100)
@given(batch=batches(), data=st.data())
def test_a_piece_has_the_structure_of_its_batch_and_its_own_rows(batch: Any, data: st.DataObject) -> None:
    rows = count_rows(batch)
    start, stop = sorted(data.draw(st.tuples(st.integers(0, rows or 0), st.integers(0, rows or 0))))
    piece = take(batch, start, stop)
    assert structure(piece) == structure(batch)
    assert differences(structure(batch), structure(piece)) == []
    assert count_rows(piece) == (None if rows is None else stop - start)


@settings(deadline=None, max_examples=100)
@given(batch=batches(), data=st.data())
def test_a_piece_of_a_piece_is_a_piece(batch: Any, data: st.DataObject, same_bits: SameBits) -> None:
    rows = count_rows(batch) or 0
    cuts = sorted(data.draw(st.tuples(*[st.integers(0, rows)] * 4)))
    piece = take(take(batch, cuts[0], cuts[3]), cuts[1] - cuts[0], cuts[2] - cuts[0])
    assert same_bits(piece, take(batch, cuts[1], cuts[2]))


@settings(deadline=None, max_examples=100)
@given(batch=batches(max_rows=5), times=st.integers(1, 4), data=st.data())
def test_spreading_equals_a_loop_over_finer_rows(
    batch: Any, times: int, data: st.DataObject, same_bits: SameBits
) -> None:
    finest = (count_rows(batch) or 0) * times
    start, stop = sorted(data.draw(st.tuples(st.integers(0, finest), st.integers(0, finest))))
    finer = spread(batch, start, stop, times)
    assert structure(finer) == structure(batch)
    assert count_rows(finer) in (None, stop - start)
    for row in range(start, stop):
        one = take(finer, row - start, row - start + 1)
        assert same_bits(one, take(batch, row // times, row // times + 1))


@settings(deadline=None, max_examples=100)
@given(
    sizes=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=5),
    side=st.sampled_from(["left", "right"]),
    tensors=st.booleans(),
)
def test_padded_rows_give_back_their_own_values_at_their_lengths(
    sizes: list[tuple[int, int]], side: Any, tensors: bool
) -> None:
    padding = {"ids": Padding(-1, side=side, lengths="n")}
    originals = [np.arange(rows * width).reshape(rows, width) for rows, width in sizes]
    pieces: list[Any] = [torch.from_numpy(ids) for ids in originals] if tensors else list(originals)
    joined = concat([with_lengths({"ids": ids}, padding) for ids in pieces], padding)
    widest = max(width for _, width in sizes)
    assert tuple(joined["ids"].shape) == (sum(rows for rows, _ in sizes), widest)
    expected = [row.tolist() for ids in originals for row in ids]
    for row, length, own in zip(joined["ids"].tolist(), joined["n"].tolist(), expected, strict=True):
        fill = [-1] * (widest - length)
        assert row == (fill + own if side == "left" else own + fill)
