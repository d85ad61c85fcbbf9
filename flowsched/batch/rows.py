"""How many rows a batch has."""

from __future__ import annotations

import numpy as np

from flowsched.batch.columns import Batch, is_bare_tensor, leaves
from flowsched.batch.errors import BatchError


def count_rows(batch: Batch) -> int | None:
    """Return the number of rows that all columns of a batch have, or None where it holds no column.

    Raises:
        BatchError: columns disagree on the number of rows, or something is not a column.

    >>> count_rows({"ids": np.zeros((8, 3)), "text": ["hello"] * 8, "note": None})
    8
    >>> count_rows(None) is None
    True
    """
    if type(batch) is np.ndarray and batch.ndim:  # the commonest batch, in the scheduler's inner loop
        return len(batch)
    if is_bare_tensor(batch):
        rows_of_tensor: int = batch.shape[0]
        return rows_of_tensor
    rows = [(path, len(value)) for path, kind, value in leaves(batch) if kind not in ("none", "empty")]
    if not rows:
        return None
    first = rows[0][1]
    for _, count in rows:
        if count != first:
            raise BatchError.rows_disagree([(".".join(path), count) for path, count in rows])
    return first
