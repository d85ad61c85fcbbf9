"""Rows of other ranks, put where they belong as they come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from flowsched.data.ordering import Places
from flowsched.data.packing import Column, Packing, Rows, as_bytes, unpack

_AT_ONCE = 1 << 22  # bytes that a rank sends another at a time, so that what is received needs little memory
_SAME_SIZE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(frozen=True)
class Senders:
    """Who sends what of one column.

    Attributes:
        reference: the column as all ranks know it, also where nobody sends.
        columns: the column of each rank that sends, by rank.
        rows: (ranks,) how many rows each sends.
        places: where they belong among all.
        travel: the device on which bytes travel.
        home: the device where the result is to be.
    """

    reference: Column
    columns: Mapping[int, Column]
    rows: Sequence[int]
    places: Places
    travel: torch.device
    home: torch.device

    @cached_property
    def turns(self) -> int:
        """How many times ranks exchange rows: more than once where they are many, to need little memory."""
        return max((-(-self.rows[rank] // self._at_once) for rank in self.columns), default=1)

    def span(self, rank: int, turn: int) -> slice:
        """Return which of its rows a rank sends in one turn."""
        rows = self.rows[rank]
        return slice(min(turn * self._at_once, rows), min((turn + 1) * self._at_once, rows))

    def sizes(self, rank: int, turn: int) -> tuple[int, ...]:
        """Return how many bytes each part of a rank has in one turn."""
        return tuple(part.stop - part.start for part in self.cut(rank, turn))

    def cut(self, rank: int, turn: int) -> list[slice]:
        """Return which bytes of each of its parts a rank sends in one turn."""
        sizes, rows, span = self.columns[rank].sizes, self.rows[rank], self.span(rank, turn)
        if rows <= self._at_once:
            return [slice(0, size if turn == 0 else 0) for size in sizes]
        return [slice(size // rows * span.start, size // rows * span.stop) for size in sizes]

    @cached_property
    def _at_once(self) -> int:
        """How many rows a rank sends at a time; only those that lie in memory one after another can be divided."""
        if not all(
            column.packing == Packing.PLAIN and len(column.sizes) == 1 for column in self.columns.values()
        ):
            return max(1, *self.rows)
        widest = max(
            (self.columns[rank].sizes[0] // max(1, self.rows[rank]) for rank in self.columns), default=0
        )
        return max(1, _AT_ONCE // max(1, widest))


class Receiver:
    """One column of all rows, filled turn by turn.

    Args:
        senders: who sends what.
        padding: what fills rows that are shorter than others.

    Attributes:
        result: the column.
    """

    def __init__(self, senders: Senders, padding: float | int | bool | None) -> None:
        self._of = senders
        self._memory: dict[tuple[int, int], list[torch.Tensor]] = {}
        self.result = _allocate(senders, padding)

    def buffers(self, rank: int, turn: int) -> list[torch.Tensor]:
        """Return what a rank's bytes are received into: their place itself, where they lie there as they come.

        Otherwise the memory is that of two turns before.
        """
        sizes = self._of.sizes(rank, turn)
        if self.is_there(rank):
            return [as_bytes(self.result[self._place(rank, turn)])]
        key = rank, turn % 2
        if key not in self._memory:
            self._memory[key] = [
                torch.empty(size, dtype=torch.uint8, device=self._of.travel) for size in sizes
            ]
        return [memory[:size] for memory, size in zip(self._memory[key], sizes, strict=True)]

    def put(self, rank: int, turn: int, parts: Sequence[torch.Tensor]) -> None:
        """Put a rank's rows of one turn where they belong."""
        column, place, result = self._of.columns[rank], self._place(rank, turn), self.result
        if column.kind in ("none", "empty"):
            return
        span = self._of.span(rank, turn)
        rows = unpack(column, parts, span.stop - span.start)
        if isinstance(result, torch.Tensor):
            rows = rows.to(result.device)
        if isinstance(result, list):
            _put_list(result, place, rows, self._of.home)
        elif rows.shape[1:] != result.shape[1:]:
            result[(_index(place, result), *map(slice, rows.shape[1:]))] = rows
        elif isinstance(result, torch.Tensor) and not isinstance(place, slice):
            bits = _SAME_SIZE.get(result.itemsize, result.dtype)  # any other dtype may lack the operation
            result.view(bits).index_copy_(0, _index(place, result), rows.view(bits))
        else:
            result[place] = rows

    def is_there(self, rank: int) -> bool:
        """Return whether what a rank sends needs no putting once it is received."""
        column = self._of.columns[rank]
        return (
            isinstance(self.result, torch.Tensor)
            and isinstance(self._of.places[rank], slice)
            and column.trailing == tuple(self.result.shape[1:])
            and self.result.device == self._of.travel
        )

    def _place(self, rank: int, turn: int) -> slice | Rows:
        place, span = self._of.places[rank], self._of.span(rank, turn)
        if isinstance(place, slice):
            return slice(place.start + span.start, place.start + span.stop)
        return place[span]


def _allocate(senders: Senders, padding: float | int | bool | None) -> Any:
    reference, columns = senders.reference, list(senders.columns.values()) or [senders.reference]
    if reference.kind in ("none", "empty"):
        return None if reference.kind == "none" else {}
    rows = sum(senders.rows)
    if reference.kind == "list":
        return [None] * rows
    shape = (rows, *map(max, *(column.trailing for column in columns), reference.trailing))
    differ = any(column.trailing != reference.trailing for column in columns)
    if reference.kind == "torch":
        made = torch.empty(shape, dtype=reference.dtype, device=senders.home)
        return made.fill_(padding) if differ and padding is not None else made
    dtype = max((column.dtype for column in columns), key=lambda one: one.itemsize)
    return np.full(shape, padding, dtype) if differ else np.empty(shape, dtype)


def _put_list(result: list[Any], place: Any, rows: list[Any], home: torch.device) -> None:
    if rows and isinstance(rows[0], torch.Tensor) and rows[0].device != home:
        rows = [row.to(home) if isinstance(row, torch.Tensor) else row for row in rows]
    if isinstance(place, slice):
        result[place] = rows
        return
    for at, row in zip(place.tolist(), rows, strict=True):
        result[at] = row


def _index(place: Any, result: Any) -> Any:
    if isinstance(place, slice) or not isinstance(result, torch.Tensor):
        return place
    return torch.from_numpy(place).to(result.device)
