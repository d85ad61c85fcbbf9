"""Batches as they cross from one process to another through Ray's object store.

Ray moves numpy arrays without a copy and whatever else by pickling it, which for a slice of a torch tensor means
its whole storage. So tensors cross as numpy arrays, and what Ray's own pickling may not understand as bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flowsched.backend import pack_object, unpack_object
from flowsched.batch import Batch, share

_PLAIN = frozenset({str, bytes, int, float, bool, complex, type(None)})
_NESTED = _PLAIN | {list, tuple, dict, np.ndarray}
_NUMPY_TYPES = frozenset(
    {"float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"}
    | {"complex64", "complex128"}
)
_SAME_SIZE = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}
"""Torch dtype of the same bits, by bytes of an element, for dtypes that numpy has not, such as bfloat16."""


class Tensor(NamedTuple):
    """A torch tensor on its way: its bits as a numpy array, its dtype, and its device where that is not the CPU."""

    bits: NDArray[Any]
    dtype: str
    device: str | None


class Packed(NamedTuple):
    """A column on its way that only flowsched's own pickling brings to any process."""

    whole: bytes


class Elements(NamedTuple):
    """A list on its way, some elements of which are tensors."""

    elements: list[Any]


def encode(batch: Batch) -> Any:
    """Return a batch as it crosses; columns that are plain already are themselves.

    Raises:
        BackendError: a column cannot be pickled.
    """
    if isinstance(batch, np.ndarray):
        return Packed(pack_object(batch, "a column")) if batch.dtype.hasobject else batch
    if isinstance(batch, dict):
        return {key: encode(value) for key, value in batch.items()}
    if isinstance(batch, list):
        return _encode_list(batch)
    return None if batch is None else _encode_tensor(batch)


def encode_rows(batch: Batch, start: int, stop: int) -> Any:
    """Return the rows ``[start, stop)`` of a batch as they cross.

    Raises:
        BackendError: likewise.
    """
    return encode(share(batch, start, stop))


def decode(crossed: Any) -> Batch:
    """Return the batch that was encoded. Memory is shared with what crossed; arrays are read-only."""
    kind = type(crossed)
    if kind is dict:
        return {key: decode(value) for key, value in crossed.items()}
    if kind is Tensor:
        return _decode_tensor(crossed)
    if kind is Packed:
        return unpack_object(crossed.whole)
    if kind is Elements:
        return [_decode_tensor(one) if type(one) is Tensor else one for one in crossed.elements]
    return crossed


def decode_copy(crossed: Any) -> Batch:
    """Return the batch that was encoded, in memory of its own."""
    kind = type(crossed)
    if kind is np.ndarray:
        return crossed.copy()
    if kind is dict:
        return {key: decode_copy(value) for key, value in crossed.items()}
    if kind is list:
        return [decode_copy(one) if type(one) is np.ndarray else one for one in crossed]
    if kind is Tensor:
        return _decode_tensor(crossed._replace(bits=crossed.bits.copy()))
    if kind is Elements:
        return [decode_copy(one) if type(one) is Tensor else one for one in crossed.elements]
    return decode(crossed)


def count_bytes(batch: Batch) -> int:
    """Return about how many bytes a batch takes in the object store."""
    if isinstance(batch, dict):
        return sum(map(count_bytes, batch.values()))
    if isinstance(batch, list):
        some = batch[:64]
        each = sum(_size_of(one) for one in some) / max(1, len(some))
        return int(each * len(batch))
    return int(getattr(batch, "nbytes", 0))


def _size_of(element: object) -> int:
    return int(getattr(element, "nbytes", 0)) or sys.getsizeof(element)


def _encode_list(column: list[Any]) -> Any:
    if _is_plain(column):
        return column
    torch = sys.modules.get("torch")
    if torch is not None and set(map(type, column)) <= {torch.Tensor, *_PLAIN}:
        return Elements([_encode_tensor(one) if isinstance(one, torch.Tensor) else one for one in column])
    return Packed(pack_object(column, "a list column"))


def _is_plain(elements: Collection[Any]) -> bool:
    """Whether Ray's own pickling brings the elements to any process, and fast: nested lists of numbers are."""
    kinds = set(map(type, elements))
    if kinds <= _PLAIN:
        return True
    if not kinds <= _NESTED:
        return False
    return all(_is_plain_nested(one) for one in elements if type(one) in _NESTED - _PLAIN)


def _is_plain_nested(element: Any) -> bool:
    if isinstance(element, np.ndarray):
        return not element.dtype.hasobject
    if isinstance(element, dict):
        return _is_plain(element.keys()) and _is_plain(element.values())
    return _is_plain(element)


def _encode_tensor(tensor: Any) -> Any:
    torch: Any = sys.modules["torch"]
    dtype = str(tensor.dtype).removeprefix("torch.")
    device = None if tensor.device.type == "cpu" else tensor.device.type
    plain = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
    if dtype not in _NUMPY_TYPES:
        same_size = _SAME_SIZE.get(plain.element_size())
        if same_size is None or tensor.is_quantized or tensor.is_complex():
            return Packed(pack_object(plain.clone(), "a column"))
        plain = plain.view(getattr(torch, same_size))
    return Tensor(plain.numpy(), dtype, device)


def _decode_tensor(crossed: Tensor) -> Any:
    import torch

    dtype = getattr(torch, crossed.dtype)
    tensor = torch.from_numpy(np.asarray(_Writable(crossed.bits)))
    if tensor.dtype is not dtype:
        tensor = tensor.view(dtype)
    if crossed.device is not None and getattr(torch, crossed.device).is_available():
        tensor = tensor.to(crossed.device)
    return tensor


class _Writable:
    """An array as torch takes it without a warning: torch knows no read-only tensors.

    Like views of tensors on other backends, what is made of it must not be written to by those who share it.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface
