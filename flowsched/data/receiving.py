"""Rows of other ranks, put where they belong as they come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from flowsched.data.ordering import Places
from flowsched.data.packing import Column, as_bytes, unpack

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


class Receiver:
    """One column of all rows, filled rank by rank.

    Args:
        senders: who sends what.
        padding: what fills rows that are shorter than others.

    Attributes:
        result: the column.
    """

    def __init__(self, senders: Senders, padding: float | int | bool | None) -> None:
        self._of = senders
        self.result = _allocate(senders, padding)

    def buffers(self, rank: int) -> list[torch.Tensor]:
        """Return what a rank's bytes are received into: their place itself, where they lie there as they come."""
        column = self._of.columns[rank]
        if self._is_direct(rank):
            return [as_bytes(self.result[self._of.places[rank]])]
        return [torch.empty(size, dtype=torch.uint8, device=self._of.travel) for size in column.sizes]

    def put(self, rank: int, parts: Sequence[torch.Tensor]) -> None:
        """Put a rank's rows where they belong, if they are not there already."""
        column, place, result = self._of.columns[rank], self._of.places[rank], self.result
        if column.kind in ("none", "empty"):
            return
        rows = unpack(column, parts, self._of.rows[rank])
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
        return self._is_direct(rank)

    def _is_direct(self, rank: int) -> bool:
        column = self._of.columns[rank]
        return (
            isinstance(self.result, torch.Tensor)
            and isinstance(self._of.places[rank], slice)
            and column.trailing == tuple(self.result.shape[1:])
            and self.result.device == self._of.travel
        )


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
