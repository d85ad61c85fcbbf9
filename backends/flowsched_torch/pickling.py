"""Columns that are no arrays of numbers, and what a schema is made of, as bytes."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flowsched.backend import unpack_object
from flowsched.runtime.pickler import Pickler
from flowsched_torch.messages import UnsendableError


class _Pickler(Pickler):
    """Pickles what other processes can read, and of a tensor its own elements only, not its whole storage."""

    def reducer_override(self, value: Any) -> Any:
        if type(value) is torch.Tensor and _is_plain(value):
            if value.untyped_storage().nbytes() != value.nbytes:
                value = value.clone(memory_format=torch.contiguous_format)
            if value.requires_grad:
                return NotImplemented
            return _tensor, (_as_bytes(value), value.dtype, tuple(value.shape))
        return super().reducer_override(value)


def pack_column(value: Any) -> memoryview:
    """Return a list, or an array of objects, as bytes.

    Raises:
        Exception: what pickling an element raises.
    """
    file = io.BytesIO()
    _Pickler(file, protocol=5).dump(value)
    return file.getbuffer()


def unpack_column(packed: Any) -> Any:
    """Return what :func:`pack_column` was given.

    Raises:
        UnsendableError: an element cannot be read here; the cause is what it raised.
    """
    try:
        return unpack_object(packed)
    except Exception as error:  # an object may refuse in any way
        raise UnsendableError from error


def _is_plain(tensor: torch.Tensor) -> bool:
    return tensor.device.type == "cpu" and tensor.layout is torch.strided and not tensor.is_quantized


def _as_bytes(tensor: torch.Tensor) -> Any:
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
    return plain.view(-1).view(torch.uint8).numpy().tobytes() if plain.numel() else b""


def _tensor(packed: bytes, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    if not packed:
        return torch.empty(shape, dtype=dtype)
    own: Callable[..., Any] = np.frombuffer
    return torch.from_numpy(own(packed, np.uint8).copy()).view(dtype).view(shape)
