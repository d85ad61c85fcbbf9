"""Few rows as plain bytes, which Ray passes on as they are: to pickle a small array costs more than to copy it."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from flowsched_ray.edge import Tensor

_MOST = 65_536  # bytes of rows; of more, a copy costs more than the pickling that it saves
_TYPES = tuple(
    np.dtype(name)
    for name in (
        *("float32", "int64", "bool", "uint8", "float64", "float16", "int32", "int16", "int8"),
        *("uint16", "uint32", "uint64", "complex64", "complex128"),
    )
)
_CODES = {dtype: code for code, dtype in enumerate(_TYPES)}
_TENSOR_TYPES = (
    *("", "float32", "int64", "bool", "uint8", "float64", "float16", "bfloat16", "int32", "int16", "int8"),
    *("uint16", "uint32", "uint64", "complex64", "complex128"),
)
_TENSOR_CODES = {name: code for code, name in enumerate(_TENSOR_TYPES)}
_NUMPY = 0
"""What stands in place of a torch dtype where the rows are a numpy array."""
_LAYOUT = struct.Struct("<qqq")
"""How rows begin: numpy dtype, torch dtype, and how many axes there are, the lengths of which follow."""


def pack(head: bytes, crossed: Any, most: int = _MOST) -> bytes | None:
    """Return a head with a batch behind it, or None where the batch is no single small column of numbers.

    Args:
        head: whatever goes before, a multiple of 8 bytes long.
        crossed: a batch as it crosses; of None nothing is put behind the head.
        most: bytes of rows that are still small.
    """
    if crossed is None:
        return head
    torch_code: int | None = _NUMPY
    array = crossed
    if type(crossed) is Tensor and crossed.device is None:
        array, torch_code = crossed.bits, _TENSOR_CODES.get(crossed.dtype)
    if type(array) is not np.ndarray or array.nbytes > most or not array.flags.c_contiguous:
        return None
    code = _CODES.get(array.dtype)
    if code is None or torch_code is None:
        return None
    axes = array.ndim
    return b"".join((head, struct.pack(f"<{3 + axes}q", code, torch_code, axes, *array.shape), array.data))


def unpack(packed: bytes, at: int) -> Any:
    """Return the batch behind a head of ``at`` bytes, as it crossed: read-only, in the memory of the bytes."""
    if len(packed) == at:
        return None
    code, torch_code, axes = _LAYOUT.unpack_from(packed, at)
    at += _LAYOUT.size
    shape = struct.unpack_from(f"<{axes}q", packed, at)
    array: np.ndarray[Any, Any] = np.ndarray(shape, _TYPES[code], packed, at + 8 * axes)
    return array if torch_code == _NUMPY else Tensor(array, _TENSOR_TYPES[torch_code], None)
