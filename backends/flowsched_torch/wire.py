"""A batch as what moves between ranks: numbers that change from step to step, a schema that seldom does, and bytes.

Small columns and all that must be pickled are packed one behind another; a large column of numbers stays where it
is and moves straight from its own memory into that of the batch that the reader gets.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from flowsched.batch import Batch
from flowsched.batch.columns import Path, leaves
from flowsched_torch.pickling import pack_column, unpack_column

Bytes: TypeAlias = NDArray[np.uint8]

BULK = 1 << 18  # bytes; columns of this size or more are not packed
_ALIGN = 64  # any dtype may begin there

Code: TypeAlias = Literal["numpy", "records", "torch", "direct", "pickled", "none", "empty"]


class Column(NamedTuple):
    """What the bytes of one leaf of a batch mean, apart from its shape.

    Attributes:
        path: the keys that lead to it.
        code: how it travels.
        dtype: of numpy or torch; None for others.
        axes: number of axes; 0 for what has no shape.
    """

    path: Path
    code: Code
    dtype: Any
    axes: int


Schema: TypeAlias = tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Encoded:
    """A batch ready to be sent.

    Attributes:
        schema: its columns in the order in which the batch holds them.
        dims: the shape of each array, the number of bytes of each pickled column.
        packed: what is packed: the bytes of a column, or an array of any strides.
        sizes: bytes of each of ``packed``.
        bulk: the large columns, as contiguous arrays or tensors.
        direct: the tensors that go from device to device.
    """

    schema: Schema
    dims: tuple[int, ...]
    packed: Sequence[Any]
    sizes: Sequence[int]
    bulk: Sequence[Any]
    direct: Sequence[Any] = ()


def encode(batch: Batch, takes: Callable[[torch.Tensor], bool] | None = None) -> Encoded:
    """Return a batch ready to be sent.

    Args:
        batch: the batch.
        takes: says which tensors go from device to device; all others go by the host.

    Raises:
        MemoryError: a column that must be copied is too large.
        Exception: what pickling an element of a list raises.
    """
    if type(batch) is np.ndarray and not batch.dtype.hasobject:  # the commonest batch
        schema: Schema = (Column((), "numpy", batch.dtype, batch.ndim),)
        if batch.nbytes < BULK:
            return Encoded(schema, batch.shape, (batch,), (batch.nbytes,), ())
        return Encoded(schema, batch.shape, (), (), (np.ascontiguousarray(batch),))
    columns: list[Column] = []
    dims: list[int] = []
    packed: list[Any] = []
    sizes: list[int] = []
    bulk: list[Any] = []
    direct: list[Any] = []
    for path, kind, value in leaves(batch):
        column, own = _column(path, kind, value, takes)
        columns.append(column)
        if column.code in ("none", "empty"):
            continue
        if column.code == "direct":
            dims.extend(own.shape)
            direct.append(own)
            continue
        size = own.nbytes if isinstance(own, np.ndarray | torch.Tensor) else len(own)
        dims.extend(own.shape if column.axes else (size,))
        if size >= BULK and column.axes:
            bulk.append(np.ascontiguousarray(own) if isinstance(own, np.ndarray) else own.contiguous())
        else:
            packed.append(own)
            sizes.append(size)
    return Encoded(tuple(columns), tuple(dims), packed, sizes, bulk, direct)


def _column(
    path: Path, kind: str, value: Any, takes: Callable[[torch.Tensor], bool] | None
) -> tuple[Column, Any]:
    if kind == "numpy" and not value.dtype.hasobject and type(value) in (np.ndarray, np.recarray, np.memmap):
        code: Code = "records" if type(value) is np.recarray else "numpy"
        return Column(path, code, value.dtype, value.ndim), value.view(np.ndarray)
    if kind == "torch" and not value.is_quantized:
        plain = value.detach().resolve_conj().resolve_neg()
        if takes is not None and takes(plain):
            return Column(path, "direct", value.dtype, value.ndim), plain.contiguous()
        plain = plain.cpu()
        return Column(path, "torch", value.dtype, value.ndim), plain
    if kind in ("none", "empty"):
        return Column(path, kind, None, 0), None  # type: ignore[arg-type]
    return Column(path, "pickled", None, 0), pack_column(value)


def bulk_bytes(column: Any) -> torch.Tensor:
    """Return the memory of a contiguous array or tensor as a tensor of bytes, which does not keep it alive."""
    address = column.data_ptr() if isinstance(column, torch.Tensor) else column.ctypes.data
    # Torch warns of arrays that are read-only; nothing is written here.
    memory = (ctypes.c_uint8 * column.nbytes).from_address(address)
    return torch.frombuffer(memory, dtype=torch.uint8)


def spans(sizes: Sequence[int], start: int) -> tuple[list[int], int]:
    """Return where each of the packed columns begins behind ``start``, and where the last one ends."""
    found = []
    for size in sizes:
        start = -(-start // _ALIGN) * _ALIGN
        found.append(start)
        start += size
    return found, start


def pack(encoded: Encoded, begins: Sequence[int], place: Bytes) -> None:
    """Copy the packed columns to where they begin in ``place``."""
    for own, begin, size in zip(encoded.packed, begins, encoded.sizes, strict=True):
        if not size:
            continue
        target = place[begin : begin + size]
        if isinstance(own, np.ndarray):
            target.view(own.dtype).reshape(own.shape)[...] = own
        elif isinstance(own, torch.Tensor):
            torch.from_numpy(target).view(own.dtype).view(own.shape).copy_(own)
        else:
            target[:] = np.frombuffer(own, np.uint8)


def column_sizes(schema: Schema, dims: Sequence[int]) -> list[int]:
    """Return the bytes of each column that has some."""
    sizes, at = [], 0
    for column in schema:
        if column.code in ("none", "empty", "direct"):
            at += column.axes
            continue
        if not column.axes:
            sizes.append(dims[at])
            at += 1
            continue
        count = column.dtype.itemsize
        for length in dims[at : at + column.axes]:
            count *= length
        sizes.append(count)
        at += column.axes
    return sizes


def is_bulk(column: Column, size: int) -> bool:
    """Whether a column of this size moves on its own."""
    return size >= BULK and column.axes > 0


def direct_shapes(schema: Schema, dims: Sequence[int]) -> list[tuple[tuple[int, ...], Any]]:
    """Return shape and dtype of each tensor that goes from device to device."""
    found, at = [], 0
    for column in schema:
        if column.code == "direct":
            found.append((tuple(dims[at : at + column.axes]), column.dtype))
        at += 1 if column.code == "pickled" else column.axes
    return found


def decode(
    schema: Schema, dims: Sequence[int], places: Sequence[Bytes], direct: Sequence[torch.Tensor] = ()
) -> Batch:
    """Return the batch whose columns' bytes are in ``places``; its arrays and tensors are views of them.

    Args:
        schema: its columns.
        dims: as in :class:`Encoded`.
        places: the bytes of each column that has some, in the order of the schema.
        direct: the tensors that came from device to device.
    """
    at, number = 0, 0
    from_devices = iter(direct)
    batch: Batch = None
    for column in schema:
        value: Any = None
        if column.code == "empty":
            value = {}
        elif column.code == "pickled":
            value = unpack_column(places[number])
            at, number = at + 1, number + 1
        elif column.code == "direct":
            value, at = next(from_devices), at + column.axes
        elif column.axes:
            shape = tuple(dims[at : at + column.axes])
            value = _view(column, shape, places[number])
            at, number = at + column.axes, number + 1
        if not column.path:
            return value
        batch = {} if batch is None else batch
        inner = batch
        for key in column.path[:-1]:
            inner = inner.setdefault(key, {})
        inner[column.path[-1]] = value
    return batch


def _view(column: Column, shape: tuple[int, ...], place: Bytes) -> Any:
    if column.code == "torch":
        if not len(place):
            return torch.empty(shape, dtype=column.dtype)
        return torch.from_numpy(place).view(column.dtype).view(shape)
    array = place.view(column.dtype).reshape(shape) if len(place) else np.empty(shape, column.dtype)
    if column.code == "records":
        array = array.view(np.recarray)
    array.setflags(write=False)
    return array
