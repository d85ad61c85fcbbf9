"""Memory that messages are received into and sent from, used again when nobody refers to it any more."""

from __future__ import annotations

import sys
from math import prod
from typing import Any

import numpy as np
import torch

from flowsched_torch.wire import Bytes, Column, decode, spans

_KEPT = 2


class Place:
    """Memory for one message.

    Attributes:
        unused: how many references there are to its bytes while no batch refers to them.
    """

    __slots__ = (
        "_first",
        "_first_size",
        "_head",
        "_numbers",
        "bytes",
        "memory",
        "size",
        "tensor",
        "unused",
    )

    def __init__(self, size: int) -> None:
        self.size = size
        self.bytes: Bytes = np.empty(size, np.uint8)
        self.tensor = torch.from_numpy(self.bytes)
        self.memory: memoryview = self.bytes.data
        self._first, self._first_size = [self.tensor], size
        self._head = b""
        self._numbers: Any = None
        self.unused = 0
        self.unused = self._count()

    def first(self, size: int) -> list[torch.Tensor]:
        """Return the first bytes as a list of one tensor, as gloo takes it."""
        if size != self._first_size:
            self._first, self._first_size = [self.tensor[:size]], size
        return self._first

    def numbers(self, column: Column, begin: int, head: bytes) -> Any:
        """Return the one small array or tensor of a message.

        Args:
            column: what its bytes mean.
            begin: where the beginning of the message ends.
            head: that beginning, with the shape; while it is the same, so is where the numbers are.
        """
        if self._head != head:
            self._numbers, self._head = self._find_numbers(column, begin, head), head
        if column.code == "numpy":
            return self._numbers[:]
        tensor = torch.from_numpy(self._numbers[:])
        return tensor if tensor.dtype is column.dtype else tensor.view(column.dtype)

    def _find_numbers(self, column: Column, begin: int, head: bytes) -> Any:
        shape = tuple(np.frombuffer(head, np.uint64)[-column.axes :].tolist())
        size = column.dtype.itemsize * prod(shape)
        (at,), _ = spans((size,), begin)
        had = self._numbers is not None
        if column.code == "numpy":
            found = decode((column,), shape, (self.bytes[at : at + size],))
        else:
            found = self.bytes[at : at + size].view(_numpy_dtype(column.dtype)).reshape(shape)
        self.unused += (found.base is self.bytes) - had
        return found

    def _count(self) -> int:
        return sys.getrefcount(self.bytes)


def _numpy_dtype(dtype: torch.dtype) -> Any:
    """Return numpy's dtype of the same numbers, or one as wide where it has none."""
    try:
        return torch.empty(0, dtype=dtype).numpy().dtype
    except (TypeError, RuntimeError):
        return np.dtype(f"u{dtype.itemsize}") if dtype.itemsize <= 8 else np.dtype("c16")


class Places:
    """A few places used in turn; one that a batch still refers to is left to it."""

    def __init__(self) -> None:
        self._kept: list[Place] = []

    def take(self, size: int) -> Place:
        """Return a free place of at least ``size`` bytes."""
        for place in self._kept:  # one is free if no batch refers to its memory
            if place.size >= size and sys.getrefcount(place.bytes) <= place.unused:
                return place
        place = Place(size)
        self._kept = [place, *(own for own in self._kept if own.size >= size)][:_KEPT]
        return place
