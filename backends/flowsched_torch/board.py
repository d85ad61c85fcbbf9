"""A piece of memory that all local ranks share: who is in the middle of what, in case one dies without a word."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Callable
from typing import Self

_SIZE = 8  # bytes of a rank's number
_IDLE = 0


class Board:
    """By rank, the call whose worker runs, or the replica that is being built."""

    def __init__(self, memory: mmap.mmap, file: int) -> None:
        self._memory = memory
        self._places = memoryview(memory).cast("q")
        self.file = file

    @classmethod
    def make(cls, ranks: int) -> Self:
        """Make one for so many ranks; ``file`` is what others open it by."""
        with tempfile.TemporaryFile() as made:
            file = os.dup(made.fileno())
        os.ftruncate(file, ranks * _SIZE)
        return cls(mmap.mmap(file, ranks * _SIZE), file)

    @classmethod
    def open(cls, file: int) -> Self:
        """Open the one that another process has made."""
        return cls(mmap.mmap(file, 0), file)

    def note_call(self, rank: int, call: int) -> None:
        """Note which call's worker runs; -1 for none."""
        self._places[rank] = call + 1

    def note_build(self, rank: int) -> Callable[[int], None]:
        """Return what notes which of the rank's replicas is being built, by its place among them."""
        places = self._places

        def note(place: int) -> None:
            places[rank] = -1 - place

        return note

    def call_of(self, rank: int) -> int | None:
        """Return the call whose worker runs, if one does."""
        noted = self._places[rank]
        return noted - 1 if noted > _IDLE else None

    def build_of(self, rank: int) -> int:
        """Return the place of the replica that is being built, or 0."""
        noted = self._places[rank]
        return -1 - noted if noted < _IDLE else 0

    def close(self) -> None:
        """Let go of it."""
        self._places.release()
        self._memory.close()
        os.close(self.file)
