"""What all batches of one node have in common, described cheaply enough to be compared at every call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from flowsched.batch.columns import Batch, Kind, Leaf, Path, is_bare_tensor, leaves
from flowsched.batch.errors import say_column

TEXT = (np.str_, np.bytes_)

LeafType: TypeAlias = tuple[Path, Kind, Any, int]
"""Path, kind, dtype and number of axes of a leaf; text of any width has the dtype of width 0, a list none."""


class Structure(NamedTuple):
    """What a batch is, apart from its values and its number of rows. Compares and hashes as tuples do.

    Two structures are equal when their columns and trailing shapes are. Between batches of one node, trailing
    shapes may differ and columns may not: ask :func:`differences` where two structures are not equal.

    Attributes:
        columns: the leaves sorted by path, so that the order of a dict's keys does not matter.
        trailing: the shape of each leaf without its first axis, in the same order; ``()`` where it has none.
    """

    columns: tuple[LeafType, ...]
    trailing: tuple[tuple[int, ...], ...]


def structure(batch: Batch) -> Structure:
    """Return the structure of a batch.

    Raises:
        BatchError: something in it is not a column.

    >>> structure(np.zeros((4, 7), dtype=np.int32)) == structure(np.ones((2, 7), dtype=np.int32))
    True
    """
    if type(batch) is np.ndarray and batch.ndim:  # the commonest batch, in the scheduler's inner loop
        return Structure((((), "numpy", _dtype(batch), batch.ndim),), (batch.shape[1:],))
    if is_bare_tensor(batch):
        return Structure((((), "torch", batch.dtype, batch.ndim),), (tuple(batch.shape[1:]),))
    found = leaves(batch)
    if len(found) > 1:
        found.sort(key=_path)
    columns: list[LeafType] = []
    trailing: list[tuple[int, ...]] = []
    for path, kind, value in found:
        if kind == "numpy":
            columns.append((path, kind, _dtype(value), value.ndim))
            trailing.append(value.shape[1:])
        elif kind == "torch":
            columns.append((path, kind, value.dtype, value.ndim))
            trailing.append(tuple(value.shape[1:]))
        else:
            columns.append((path, kind, None, 1 if kind == "list" else 0))
            trailing.append(())
    return Structure(tuple(columns), tuple(trailing))


def differences(before: Structure, after: Structure) -> list[str]:
    """Return one sentence for each key, kind, dtype or number of axes that changed; shapes may.

    >>> differences(structure({"ids": [1], "mask": [2]}), structure({"ids": np.ones(1), "masc": [2]}))
    ["column 'ids' was a list and is a numpy array of float64 with 1 axis",
     "column 'masc' is new: a list",
     "column 'mask' is gone"]
    """
    return [sentence for _, _, sentence in changes(before, after)]


def are_alike(batches: Sequence[Batch]) -> bool:
    """Whether all batches are, at first sight, bare arrays or tensors of one dtype of numbers, one shape of rows
    and one device."""
    first = batches[0]
    if is_bare_tensor(first):
        return _are_tensors_alike(batches)
    if type(first) is not np.ndarray or not first.ndim or first.dtype.kind not in "biufc":
        return False
    dtype, trailing = first.dtype, first.shape[1:]
    return all(type(b) is np.ndarray and b.dtype is dtype and b.shape[1:] == trailing for b in batches)


class Change(NamedTuple):
    """One difference between two structures, with the code of the error that it leads to."""

    code: str
    path: Path
    sentence: str


def changes(before: Structure, after: Structure) -> list[Change]:
    """Return the differences in the order of their paths, with the code of the error that each is."""
    if before.columns == after.columns:
        return []
    old = {leaf[0]: leaf for leaf in before.columns}
    new = {leaf[0]: leaf for leaf in after.columns}
    paths = sorted({*old, *new})
    found = []
    for path in paths:
        if old.get(path) == new.get(path) or any(_is_below(path, other) for other in paths):
            continue  # unchanged, or told where a dict took the place of a column
        was, now = _say_at(path, old), _say_at(path, new)
        code = "column-changed" if path in old and path in new else "keys-changed"
        subject = say_column(path) if path else "the batch"
        if now is None:
            found.append(Change(code, path, f"{subject} is gone"))
        elif was is None:
            found.append(Change(code, path, f"{subject} is new: {now}"))
        else:
            found.append(Change(code, path, f"{subject} was {was} and is {now}"))
    return found


def _are_tensors_alike(batches: Sequence[Batch]) -> bool:
    first = batches[0]
    kind, dtype, layout, device, shape = type(first), first.dtype, first.layout, first.device, first.shape
    for batch in batches:
        if (
            type(batch) is not kind
            or batch.dtype is not dtype
            or batch.layout is not layout
            or batch.is_nested
        ):
            return False
        if batch.device != device or (batch.shape != shape and batch.shape[1:] != shape[1:]):
            return False
    return True


def _path(leaf: Leaf) -> Path:
    return leaf[0]


def _dtype(array: np.ndarray[Any, Any]) -> np.dtype[Any]:
    dtype: np.dtype[Any] = array.dtype
    return np.dtype(dtype.str[:2]) if dtype.type in TEXT else dtype


def _is_below(path: Path, above: Path) -> bool:
    return len(path) > len(above) and path[: len(above)] == above


def _say_at(path: Path, leaf_types: Mapping[Path, LeafType]) -> str | None:
    leaf = leaf_types.get(path)
    if leaf is not None:
        return _say(leaf)
    inside = [other for other in leaf_types if _is_below(other, path)]
    return f"a dict of {', '.join(repr('.'.join(other)) for other in inside)}" if inside else None


def _say(leaf: LeafType) -> str:
    _, kind, dtype, ndim = leaf
    if kind in ("numpy", "torch"):
        what = "numpy array" if kind == "numpy" else "torch tensor"
        return f"a {what} of {_say_dtype(dtype)} with {ndim} ax{'is' if ndim == 1 else 'es'}"
    return {"list": "a list", "none": "None"}.get(kind, "an empty dict")


def _say_dtype(dtype: Any) -> str:
    if isinstance(dtype, np.dtype) and dtype.type in TEXT:
        return dtype.name if dtype.isnative else dtype.str[:2]
    return str(dtype).removeprefix("torch.")
