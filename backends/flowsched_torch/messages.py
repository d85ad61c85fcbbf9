"""Messages of one number, step after step: how large they may be is known on both sides from those before.

Each message begins with one part of a fixed capacity: a header, the shapes, and what fits in. What does not fit
follows in a second part of exact size. Large columns follow one by one, each into memory that the receiver has
posted for one as large as last time, where it fits, and otherwise into memory of its exact size. Both sides draw
the same conclusions from what was sent, so that nothing needs to be asked for.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

HEADER = struct.Struct("<BxxxIIIQ")  # kind, numbers, bytes of the schema, bulk columns, bytes of it all
SAME, NEW, VOID = 0, 1, 2
_PAGE = 4096


class UnsendableError(Exception):
    """A batch that could not be sent, or not be read where it arrived; the cause is what that raised."""


class VoidError(Exception):
    """A message that says that the step is none, though its receives were posted."""


def capacity_for(size: int, capacity: int) -> int:
    """Return the capacity of the next message after one of ``size`` bytes: a little more, if it must change."""
    if size <= capacity and (capacity == _PAGE or 4 * size >= capacity):
        return capacity
    return max(-(-(size + size // 8) // _PAGE), 1) * _PAGE


class Capacities:
    """What both ends of a stream know of the next message."""

    def __init__(self) -> None:
        self.first = _PAGE
        self.bulk: list[int] = []

    def learn(self, size: int, bulk: Sequence[int]) -> None:
        self.first = capacity_for(size, self.first)
        if self.bulk or bulk:
            before = [*self.bulk[: len(bulk)], *([0] * (len(bulk) - len(self.bulk)))]
            self.bulk = [capacity_for(own, old) for own, old in zip(bulk, before, strict=True)]
