"""A piece of memory that all local ranks share: who is in the middle of what, in case one dies without a word."""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
from collections.abc import Callable
from typing import Self

_PLACE = struct.Struct("<q")
_IDLE = 0


class Board:
    """By rank, the call whose worker runs, or the replica that is being built."""

    def __init__(self, memory: mmap.mmap, file: int) -> None:
        self._memory = memory
        self.file = file

    @classmethod
    def make(cls, ranks: int) -> Self:
        """Make one for so many ranks; ``file`` is what others open it by."""
        with tempfile.TemporaryFile() as made:
            file = os.dup(made.fileno())
        os.ftruncate(file, ranks * _PLACE.size)
        return cls(mmap.mmap(file, ranks * _PLACE.size), file)

    @classmethod
    def open(cls, file: int) -> Self:
        """Open the one that another process has made."""
        return cls(mmap.mmap(file, 0), file)

    def note_call(self, rank: int, call: int) -> None:
        """Note which call's worker runs; -1 for none."""
        _PLACE.pack_into(self._memory, rank * _PLACE.size, call + 1)

    def note_build(self, rank: int) -> Callable[[int], None]:
        """Return what notes which of the rank's replicas is being built, by its place among them."""
        return lambda place: _PLACE.pack_into(self._memory, rank * _PLACE.size, -1 - place)

    def call_of(self, rank: int) -> int | None:
        """Return the call whose worker runs, if one does."""
        noted: int = _PLACE.unpack_from(self._memory, rank * _PLACE.size)[0]
        return noted - 1 if noted > _IDLE else None

    def build_of(self, rank: int) -> int:
        """Return the place of the replica that is being built, or 0."""
        noted: int = _PLACE.unpack_from(self._memory, rank * _PLACE.size)[0]
        return -1 - noted if noted < _IDLE else 0

    def close(self) -> None:
        """Let go of it."""
        self._memory.close()
        os.close(self.file)
