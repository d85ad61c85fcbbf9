"""Whether what ranks tell of their rows fits together: found by all of them alike, before any row is sent."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from flowsched.batch.columns import Path
from flowsched.batch.errors import say_column
from flowsched.data.packing import Column
from flowsched.errors import Problem

Padding = float | int | bool | Mapping[str, float | int | bool] | None


@dataclass(frozen=True)
class Told:
    """What one rank tells all others.

    Attributes:
        rows: how many it has, those that pad included.
        columns: of its rows, by path, in its order.
        deal: what its loader deals; see :func:`flowsched.data.ordering.describe`.
        to: who gets all rows.
        padding: what fills rows that are shorter than others.
        problems: what is wrong on this rank, whatever others have.
    """

    rows: int = 0
    columns: Mapping[Path, Column] = field(default_factory=dict)
    deal: Mapping[str, Any] = field(default_factory=dict)
    to: int | None = None
    padding: Padding = None
    problems: tuple[Problem, ...] = ()


def read_number(value: Any) -> Any:
    """Return a real number of any type, numpy's too, as one of Python's; anything else as it is.

    >>> read_number(np.float32(0.5)), read_number(np.int64(2)), read_number(np.bool_(True)), read_number("1")
    (0.5, 2, True, '1')
    """
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    try:
        return float(value) if isinstance(value, numbers.Real) else value
    except OverflowError:
        return value


def read_padding(value: Any) -> Any:
    """Return padding with the numbers that :func:`read_number` returns, in the order of their columns."""
    if not isinstance(value, Mapping):
        return read_number(value)
    return {path: read_number(value[path]) for path in sorted(value, key=repr)}


def find_reference(everyone: Sequence[Told]) -> int:
    """Return the rank whose columns others are compared with: the first that has rows, or else says most."""

    def merit(rank: int) -> tuple[bool, int, int]:
        kinds = [column.kind for column in everyone[rank].columns.values()]
        says = sum((kind == "list") + 2 * (kind in ("torch", "numpy")) for kind in kinds)
        return everyone[rank].rows > 0, 0 if everyone[rank].rows else says, -rank

    return max(range(len(everyone)), key=merit)


def find_conflicts(everyone: Sequence[Told]) -> Iterator[Problem]:
    """Yield what ranks were called with differently."""
    first = everyone[0]
    for rank, told in enumerate(everyone):
        for name, ours, theirs in (
            *((name, told.deal.get(name), first.deal.get(name)) for name in {**first.deal, **told.deal}),
            ("to", told.to, first.to),
            ("padding", told.padding, first.padding),
        ):
            if repr(ours) != repr(theirs):  # or NaN would differ from itself
                yield Problem(
                    "ranks-disagree",
                    f"rank {rank}",
                    f"{name} is {ours!r}, and {theirs!r} on rank 0",
                    "Call it with the same arguments on all ranks, and loaders in the same epoch",
                )


def find_misfits(everyone: Sequence[Told]) -> Iterator[Problem]:
    """Yield where the columns of ranks that have rows do not fit together."""
    of = find_reference(everyone)
    reference = everyone[of]
    for rank, told in enumerate(everyone):
        if not told.rows or rank == of:
            continue
        if told.columns.keys() != reference.columns.keys():
            yield _other_keys(rank, told, of, reference)
            continue
        for path, column in told.columns.items():
            yield from _compare(rank, column, of, reference.columns[path], told.padding)
    for column in reference.columns.values():
        yield from _check_padding(column, padding_of(column, reference.padding))


def padding_of(column: Column, padding: Padding) -> float | int | bool | None:
    """Return what fills short rows of a column, if anything does."""
    return padding.get(".".join(column.path)) if isinstance(padding, Mapping) else padding


def _other_keys(rank: int, told: Told, of: int, reference: Told) -> Problem:
    ours, theirs = (
        ", ".join(sorted(repr(".".join(path)) if path else "one without a name" for path in one.columns))
        or "none"
        for one in (told, reference)
    )
    return Problem(
        "other-columns",
        f"rank {rank}",
        f"its columns are {ours}, and those of rank {of} are {theirs}",
        "Give the same columns on every rank, and None where a rank has no rows",
    )


def _compare(rank: int, ours: Column, of: int, theirs: Column, padding: Padding) -> Iterator[Problem]:
    place = f"rank {rank}, {say_column(ours.path)}"
    if ours.kind != theirs.kind:
        said = f"it is {_KINDS[ours.kind]}, and {_KINDS[theirs.kind]} on rank {of}"
        yield Problem("other-kind", place, said, "Give the same kind of column on every rank")
    elif ours.kind not in ("torch", "numpy"):
        return
    elif _name(ours.dtype) != _name(theirs.dtype):
        said = f"its dtype is {_name(ours.dtype)}, and {_name(theirs.dtype)} on rank {of}"
        yield Problem("other-dtype", place, said, "Convert it to one dtype on every rank")
    elif ours.trailing != theirs.trailing:
        said = f"its rows have shape {ours.trailing}, and {theirs.trailing} on rank {of}"
        if len(ours.trailing) != len(theirs.trailing):
            yield Problem("other-shape", place, said, "Give rows of one number of axes on every rank")
        elif padding_of(ours, padding) is None:
            mend = (
                "Give padding=, a number that fills rows on the right, or a list with one tensor for each row"
            )
            yield Problem("other-shape", place, said, mend)


def _check_padding(column: Column, value: float | int | bool | None) -> Iterator[Problem]:
    if value is None or column.kind not in ("torch", "numpy"):
        return
    try:
        with np.errstate(over="ignore"):
            filled: Any = (
                torch.full((), value, dtype=column.dtype).item()
                if column.kind == "torch"
                else np.full((), value, dtype=column.dtype).item()
            )
        fits = _is_same(filled, value) and not _is_beyond(column.dtype, value)
    except Exception:  # noqa: BLE001 - a dtype may refuse a value in any way
        fits = False
    if not fits:
        said = f"{value!r} is no {_name(column.dtype)}, which {say_column(column.path)} is"
        yield Problem("bad-padding", "padding", said, "Give a value that its dtype can hold")


def _is_beyond(dtype: Any, value: float | int | bool) -> bool:
    # What torch rounds to the largest number it would refuse to fill many elements with.
    if not isinstance(dtype, torch.dtype) or not (dtype.is_floating_point or dtype.is_complex):
        return False
    return math.isfinite(value) and abs(value) > torch.finfo(dtype).max


def _is_same(filled: Any, value: float | int | bool) -> bool:
    """Return whether a dtype holds a value: as it is, or rounded where numbers of its kind are."""
    if not isinstance(filled, (float, complex)):
        return bool(filled == value)
    if isinstance(filled, complex):
        filled = filled.real
    if not math.isfinite(value):
        return repr(filled) == repr(float(value))
    # Formats of 8 bits and less have no inf, and hold the largest that they have instead.
    return math.isfinite(filled) and math.isclose(filled, value, rel_tol=_ROUNDED, abs_tol=_ROUNDED)


_ROUNDED = 0.25  # of a value; formats with two bits of mantissa round by at most an eighth
_KINDS = {
    "torch": "a torch tensor",
    "numpy": "a numpy array",
    "list": "a list",
    "none": "None",
    "empty": "an empty dict",
}


def _name(dtype: Any) -> str:
    """Return the name of a dtype; text of any width has the same."""
    if isinstance(dtype, np.dtype) and dtype.kind in "US":
        return "text" if dtype.kind == "U" else "bytes"
    return str(dtype).removeprefix("torch.")
