"""Columns as bytes: what one rank has, in words that all ranks can compare, and the bytes to send."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from flowsched.batch.columns import Batch, Kind, Path, leaves
from flowsched.batch.errors import BatchError, say_column

Rows = NDArray[np.int64]


class Packing(StrEnum):
    """How a column's rows are bytes: as they lie in memory, as shapes and elements, or pickled."""

    PLAIN = "plain"
    RAGGED = "ragged"
    PICKLED = "pickled"


@dataclass(frozen=True)
class Column:
    """What all ranks are told of a column of one rank.

    Attributes:
        path: the keys that lead to it.
        kind: what it is: a torch tensor, a numpy array, a list, or nothing.
        dtype: of tensors and arrays, and of the tensors in a ragged list.
        trailing: the shape of a row.
        device: the kind of device that a tensor is on.
        packing: what its bytes are.
        sizes: (parts,) how many bytes each of its parts has.
    """

    path: Path
    kind: Kind
    dtype: Any = None
    trailing: tuple[int, ...] = ()
    device: str = "cpu"
    packing: Packing = Packing.PLAIN
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Packed:
    """A column of this rank, and its bytes: uint8 tensors, views of its own memory where that can be."""

    column: Column
    parts: tuple[torch.Tensor, ...] = ()


def pack(rows: Batch, keep: Rows | None = None) -> dict[Path, Packed]:
    """Return all columns by path, in the order in which the batch holds them, as bytes.

    Args:
        rows: a batch.
        keep: which rows are taken, in which order; all as they are if it is None.

    Raises:
        BatchError: something is not a column, or a tensor whose elements do not lie in memory as they are.
        Exception: what pickling an element raises.
    """
    found = leaves(rows)
    for path, kind, value in found:
        if kind == "torch":
            _check_tensor(path, value)
    return {path: _PACK[kind](path, _keep(value, kind, keep)) for path, kind, value in found}


def unpack(column: Column, parts: Sequence[torch.Tensor], rows: int) -> Any:
    """Return the rows of a column of another rank: a tensor or an array, or a list of rows.

    The parts are those that :func:`pack` made, received; tensors and arrays share their memory.
    """
    if column.packing == Packing.PICKLED:
        packed: Any = parts[0].cpu().numpy()
        return pickle.loads(packed)
    if column.packing == Packing.RAGGED:
        return list(_unpack_ragged(column, parts, rows))
    if column.kind == "torch":
        return parts[0].view(column.dtype).reshape(rows, *column.trailing)
    return parts[0].cpu().numpy().view(column.dtype).reshape(rows, *column.trailing)


def as_bytes(value: Any) -> torch.Tensor:
    """Return (bytes,) a view of the memory of a contiguous tensor or array.

    >>> as_bytes(torch.tensor([True, False])).tolist()
    [1, 0]
    """
    if isinstance(value, torch.Tensor):
        return value.reshape(-1).view(torch.uint8)
    return torch.from_numpy(value.reshape(-1).view(np.uint8))


def _check_tensor(path: Path, value: torch.Tensor) -> None:
    # torch ends the process where bytes of a quantized tensor are asked for.
    if value.is_quantized:
        said, mend = "is quantized", "Give value.dequantize(), or value.int_repr() and the scale"
    elif value.is_meta:
        said, mend = "is on the meta device and has no elements", "Give a tensor on a device"
    else:
        return
    problem = f"{say_column(path)} {said}, so that its bytes cannot be sent"
    raise BatchError(problem, mend, code="column-kind", column=".".join(path))


def _keep(value: Any, kind: Kind, keep: Rows | None) -> Any:
    if keep is None or kind in ("none", "empty"):
        return value
    if kind == "list":
        return [value[row] for row in keep.tolist()]
    return value[torch.from_numpy(keep).to(value.device)] if kind == "torch" else value[keep]


def _pack_tensor(path: Path, value: torch.Tensor) -> Packed:
    plain = value.detach().resolve_conj().resolve_neg().contiguous()
    part = as_bytes(plain)
    trailing = tuple(plain.shape[1:])
    column = Column(path, "torch", plain.dtype, trailing, plain.device.type, sizes=(len(part),))
    return Packed(column, (part,))


def _pack_array(path: Path, value: NDArray[Any]) -> Packed:
    trailing = value.shape[1:]
    if value.dtype.hasobject or not value.dtype.itemsize:
        part = _pickle(np.asarray(value))
        return Packed(
            Column(path, "numpy", value.dtype, trailing, packing=Packing.PICKLED, sizes=(len(part),)), (part,)
        )
    plain = np.ascontiguousarray(value)
    part = as_bytes(plain if plain.flags.writeable else plain.copy())
    return Packed(Column(path, "numpy", value.dtype, trailing, sizes=(len(part),)), (part,))


def _pack_list(path: Path, value: list[Any]) -> Packed:
    if not _is_ragged(value):
        part = _pickle(list(value))
        return Packed(Column(path, "list", packing=Packing.PICKLED, sizes=(len(part),)), (part,))
    first = value[0]
    shapes = np.array([tuple(row.shape) for row in value], dtype=np.int64).reshape(len(value), first.ndim)
    elements = torch.cat([row.detach().resolve_conj().resolve_neg().reshape(-1) for row in value])
    parts = (as_bytes(shapes), as_bytes(elements))
    sizes = tuple(map(len, parts))
    trailing = (first.ndim,)  # what shapes have
    return Packed(
        Column(path, "list", first.dtype, trailing, first.device.type, Packing.RAGGED, sizes), parts
    )


def _pack_nothing(kind: Kind) -> Callable[[Path, Any], Packed]:
    return lambda path, value: Packed(Column(path, kind))  # noqa: ARG005


_PACK: dict[Kind, Callable[[Path, Any], Packed]] = {
    "torch": _pack_tensor,
    "numpy": _pack_array,
    "list": _pack_list,
    "none": _pack_nothing("none"),
    "empty": _pack_nothing("empty"),
}


def _is_ragged(value: list[Any]) -> bool:
    """Return whether these are tensors that can be sent as one: of the same dtype, device and number of axes."""
    if not value or not all(type(row) is torch.Tensor and row.layout is torch.strided for row in value):
        return False
    first = value[0]
    return not first.is_quantized and all(
        row.dtype == first.dtype and row.device == first.device and row.ndim == first.ndim for row in value
    )


def _unpack_ragged(column: Column, parts: Sequence[torch.Tensor], rows: int) -> Iterator[torch.Tensor]:
    shapes = parts[0].cpu().numpy().view(np.int64).reshape(rows, *column.trailing)
    sizes = shapes.prod(axis=1).tolist()
    elements = parts[1].view(column.dtype)
    for row, shape in zip(torch.split(elements, sizes), shapes.tolist(), strict=True):
        yield row.clone().reshape(shape)  # or each row would keep those of its whole rank in memory


class _Pickler(pickle.Pickler):
    """Pickles of a tensor its own elements only, not its whole storage, and not how it was computed."""

    def reducer_override(self, value: Any) -> Any:
        if type(value) is not torch.Tensor or value.layout is not torch.strided or value.is_quantized:
            return NotImplemented
        plain = value.detach().resolve_conj().resolve_neg().cpu().contiguous()
        return _tensor, (as_bytes(plain).numpy().tobytes(), plain.dtype, tuple(plain.shape))


def _tensor(data: bytes, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    if not data:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(data), dtype=dtype).reshape(shape)


def _pickle(value: Any) -> torch.Tensor:
    file = io.BytesIO()
    _Pickler(file, protocol=5).dump(value)
    return torch.frombuffer(file.getbuffer(), dtype=torch.uint8)
