"""Whether batches whose rows differ in shape can meet."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flowsched.batch.columns import Kind, Path
from flowsched.batch.errors import BatchError, say_column
from flowsched.batch.padding import Padding
from flowsched.batch.structures import LeafType, Structure


@dataclass(frozen=True)
class TrailingConflict:
    """Two batches that cannot meet because the rows of a column differ in shape; prints as a sentence.

    Attributes:
        column: dotted path of the column, ``""`` for a bare one.
        positions: which two of the batches, counted from 0.
        shapes: the shapes of their rows.
        problem: what is wrong.
        mend: how to put it right.
    """

    column: str
    positions: tuple[int, int]
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    problem: str
    mend: str

    def __str__(self) -> str:
        return f"{self.problem}. {self.mend}"

    def error(self) -> BatchError:
        """Return the error that joining the batches raises."""
        return BatchError(self.problem, self.mend, code="trailing-shape", column=self.column)


def trailing_conflicts(
    structures: Sequence[Structure], padding: Mapping[str, Padding] | None = None
) -> TrailingConflict | None:
    """Return the first reason for which the shapes of rows keep batches from being joined, or None.

    Args:
        structures: of the batches that meet, in their order, without differences between them.
        padding: what their model declares.

    >>> from flowsched.batch import structure
    >>> print(trailing_conflicts([structure(np.zeros((4, 7))), structure(np.zeros((4, 9)))]))
    the bare column has rows of shape (7,) in batch 0 and (9,) in batch 1. Declare its padding on the model,
    e.g. @pads(0), or return rows of one shape from every call
    """
    padding = padding or {}
    for position, other in enumerate(structures):
        first = structures[0]
        if other.trailing == first.trailing:
            continue
        for leaf, *shapes in zip(first.columns, first.trailing, other.trailing, strict=True):
            if shapes[0] != shapes[1] and (why := _why_not(leaf, padding)) is not None:
                return _conflict(leaf[0], (0, position), (shapes[0], shapes[1]), *why)
    return None


def _why_not(leaf: LeafType, padding: Mapping[str, Padding]) -> tuple[str, str] | None:
    """Return why rows of different shapes cannot be padded in this column, and the mend; or None."""
    path, kind, dtype, _ = leaf
    column = ".".join(path)
    declared = padding.get(column)
    if declared is None:
        only = f", and padding is declared for {', '.join(map(repr, padding))} only" if padding else ""
        return only, f"Declare its padding on the model, e.g. {_example(column)}"
    if _fits(declared.value, kind, dtype):
        return None
    name = str(dtype).removeprefix("torch.")
    return (
        f", and the padding value {declared.value!r} does not fit {name}",
        f"Declare a padding value that {name} can hold",
    )


def _example(column: str) -> str:
    if not column:
        return "@pads(0)"
    return f"@pads({column}=0)" if column.isidentifier() else f"@pads(**{{{column!r}: 0}})"


def _conflict(
    path: Path,
    positions: tuple[int, int],
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
    because: str,
    mend: str,
) -> TrailingConflict:
    return TrailingConflict(
        column=".".join(path),
        positions=positions,
        shapes=shapes,
        problem=f"{say_column(path)} has rows of shape {shapes[0]} in batch {positions[0]} "
        f"and {shapes[1]} in batch {positions[1]}{because}",
        mend=f"{mend}, or return rows of one shape from every call",
    )


def _fits(value: float, kind: Kind, dtype: Any) -> bool:
    if kind == "torch":
        torch: Any = sys.modules["torch"]
        if dtype == torch.bool:
            return value in (0, 1)
        if dtype.is_floating_point or dtype.is_complex:
            return not math.isfinite(value) or abs(value) <= torch.finfo(dtype).max
        return _is_whole(value) and torch.iinfo(dtype).min <= value <= torch.iinfo(dtype).max
    if dtype.kind == "b":
        return value in (0, 1)
    if dtype.kind in "iu":
        return _is_whole(value) and np.iinfo(dtype).min <= value <= np.iinfo(dtype).max
    if dtype.kind in "fc":
        return not math.isfinite(value) or abs(value) <= float(np.finfo(dtype).max)
    # No number fills text, times, records or raw bytes; numbers of other libraries are void to numpy, too.
    return dtype.kind == "O" or (dtype.kind == "V" and dtype.names is None and dtype.type is not np.void)


def _is_whole(value: float) -> bool:
    return math.isfinite(value) and value == int(value)
