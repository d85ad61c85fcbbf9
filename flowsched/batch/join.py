"""Batches in sequence as one batch."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np

from flowsched.batch.columns import Batch, Path, is_tensor
from flowsched.batch.errors import BatchError, say_column
from flowsched.batch.padding import Padding
from flowsched.batch.rows import count_rows
from flowsched.batch.structures import TEXT, are_alike, changes, structure
from flowsched.batch.trailing import trailing_conflicts


def concat(batches: Sequence[Batch], padding: Mapping[str, Padding] | None = None) -> Batch:
    """Return the rows of all batches, in sequence, bit for bit.

    A single batch is returned as is. Rows of different shapes are padded to the largest of them where
    ``padding``, which their model declares, names the column. Keys come in the order of the first batch.

    Raises:
        BatchError: there is no batch; batches differ in keys, kinds of column, dtypes, numbers of axes or
            devices; rows differ in shape and no padding that fits is declared; columns disagree on rows.

    >>> concat([{"text": ["a"], "size": np.array([1])}, {"text": ["bc"], "size": np.array([2])}])
    {'text': ['a', 'bc'], 'size': array([1, 2])}
    """
    if not batches:
        raise BatchError("there are no batches to join", "Give at least one", code="nothing-to-join")
    if len(batches) == 1:
        return batches[0]
    if are_alike(batches):
        return _join_tensors(batches) if is_tensor(batches[0]) else _join_arrays(batches)
    structures = [structure(batch) for batch in batches]
    for position, described in enumerate(structures):
        changed = changes(structures[0], described)
        if changed:
            raise BatchError.unlike(
                position,
                [change.sentence for change in changed],
                code=changed[0].code,
                column=".".join(changed[0].path),
            )
    conflict = trailing_conflicts(structures, padding)
    if conflict is not None:
        raise conflict.error()
    if len(structures[0].columns) > 1:
        for batch in batches:
            count_rows(batch)  # or columns cut at different rows would meet as if they were aligned
    one_shape = all(described.trailing == structures[0].trailing for described in structures)
    return _join((), batches, None if one_shape else padding)


def _join(path: Path, parts: Sequence[Any], padding: Mapping[str, Padding] | None) -> Batch:
    first = parts[0]
    if first is None:
        return None
    if isinstance(first, dict):
        return {key: _join((*path, key), [part[key] for part in parts], padding) for key in first}
    if isinstance(first, list):
        return list(chain.from_iterable(parts))
    tensors = is_tensor(first)
    if tensors:
        _refuse_other_devices(path, parts)
    if padding and any(part.shape[1:] != first.shape[1:] for part in parts):
        return _join_padded(parts, padding[".".join(path)])
    return _join_tensors(parts) if tensors else _join_arrays(parts)


def _join_tensors(tensors: Sequence[Any]) -> Any:
    return sys.modules["torch"].cat(tuple(tensors))


def _join_arrays(arrays: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    # Left to itself, numpy makes dtypes native in byte order and packs the fields of records.
    dtype = arrays[0].dtype
    if dtype.type in TEXT:
        dtype = max((array.dtype for array in arrays), key=attrgetter("itemsize"))
    joined = np.concatenate(arrays, dtype=dtype, casting="safe")
    return joined.view(np.recarray) if isinstance(arrays[0], np.recarray) else joined


def _join_padded(parts: Sequence[Any], padding: Padding) -> Any:
    rows = sum(len(part) for part in parts)
    widths = tuple(map(max, zip(*(part.shape[1:] for part in parts), strict=True)))
    joined = _filled(parts[0], (rows, *widths), padding.value)
    start = 0
    for part in parts:
        stop = start + len(part)
        within = tuple(
            slice(width - own, width) if padding.side == "left" else slice(own)
            for width, own in zip(widths, part.shape[1:], strict=True)
        )
        joined[(slice(start, stop), *within)] = part
        start = stop
    return joined


def _filled(like: Any, shape: tuple[int, ...], value: float) -> Any:
    return like.new_full(shape, value) if is_tensor(like) else np.full(shape, value, dtype=like.dtype)


def _refuse_other_devices(path: Path, tensors: Sequence[Any]) -> None:
    device = tensors[0].device
    for position, tensor in enumerate(tensors):
        if tensor.device != device:
            sentence = f"{say_column(path)} was on {device} and is on {tensor.device}"
            raise BatchError.unlike(position, [sentence], code="device-changed", column=".".join(path))
