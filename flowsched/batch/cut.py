"""Some rows of a batch."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from flowsched.batch.columns import Batch, is_tensor
from flowsched.batch.errors import BatchError
from flowsched.batch.rows import count_rows


def take(batch: Batch, start: int, stop: int) -> Batch:
    """Return the rows ``[start, stop)`` of a batch.

    Slices of numpy arrays and torch tensors are views; lists are sliced. Where all rows are asked for, or the
    batch holds no column, it is the batch itself.

    Raises:
        BatchError: the range is not inside the batch, or the batch is none.

    >>> take({"text": ["a", "b", "c"], "note": None}, 1, 3)
    {'text': ['b', 'c'], 'note': None}
    """
    rows = count_rows(batch)
    if rows is None:
        return batch
    if not 0 <= start <= stop <= rows:
        raise BatchError.rows_out_of_range(start, stop, rows)
    if stop - start == rows:
        return batch
    return _slice(batch, start, stop)


def spread(batch: Batch, start: int, stop: int, times: int) -> Batch:
    """Return the rows ``[start, stop)`` of a batch each row of which stands for ``times`` rows.

    Row r of the finer rows is row ``r // times`` of the batch. Only the result is allocated; the elements of
    a list are repeated by reference.

    Raises:
        BatchError: the range is not inside the finer rows, ``times`` is below 1, or the batch is none.

    >>> spread(["a", "b"], 2, 5, times=3)
    ['a', 'b', 'b']
    """
    if times == 1:
        return take(batch, start, stop)
    if times < 1:
        raise BatchError(
            f"rows cannot be spread {times} times", "Spread them at least once", code="spread-times"
        )
    rows = count_rows(batch)
    if rows is None:
        return batch
    if not 0 <= start <= stop <= rows * times:
        raise BatchError.rows_out_of_range(start, stop, rows * times)
    return _spread(batch, start, stop, times)


def share(batch: Batch, start: int, stop: int) -> Batch:
    """Return the rows ``[start, stop)``, which must be there, so that who gets them cannot change what others read.

    numpy arrays become read-only views, lists and dicts copies of their own. Torch has no read-only tensors:
    slices of them are plain views.

    >>> share({"ids": np.zeros(2)}, 0, 1)["ids"].flags.writeable
    False
    """
    if isinstance(batch, np.ndarray):
        view = batch[start:stop]
        view.setflags(write=False)
        return view
    if isinstance(batch, dict):
        return {key: share(value, start, stop) for key, value in batch.items()}
    return None if batch is None else batch[start:stop]


def protect(batch: Batch) -> Batch:
    """Return all rows as :func:`share` does."""
    if isinstance(batch, np.ndarray) and not batch.flags.writeable:
        return batch
    return share(batch, 0, sys.maxsize)


def _slice(batch: Batch, start: int, stop: int) -> Batch:
    if batch is None:
        return None
    if isinstance(batch, dict):
        return {key: _slice(value, start, stop) for key, value in batch.items()}
    return batch[start:stop]


def _spread(batch: Batch, start: int, stop: int, times: int) -> Batch:
    if batch is None:
        return None
    if isinstance(batch, dict):
        return {key: _spread(value, start, stop, times) for key, value in batch.items()}
    if isinstance(batch, list):
        return [batch[row // times] for row in range(start, stop)]
    first, last = start // times, -(-stop // times)
    column = batch[first:last]
    if start % times == 0 and stop % times == 0:
        if is_tensor(column):
            return sys.modules["torch"].repeat_interleave(column, times, dim=0)
        return np.repeat(column, times, axis=0)
    return _repeat_partly(column, start - first * times, last * times - stop, times)


def _repeat_partly(column: Any, skipped: int, left: int, times: int) -> Any:
    """Repeat every row, the first one ``skipped`` times less and the last one ``left`` times less."""
    counts = np.full(len(column), times, dtype=np.int64)
    counts[0] -= skipped
    counts[-1] -= left
    if not is_tensor(column):
        return np.repeat(column, counts, axis=0)
    torch: Any = sys.modules["torch"]
    repeats = torch.from_numpy(counts).to(column.device)
    # Giving the size spares an accelerator the wait for the sum of the counts.
    return torch.repeat_interleave(column, repeats, dim=0, output_size=len(column) * times - skipped - left)
