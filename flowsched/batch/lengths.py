"""The width that rows had before padding, kept as a column so that it survives later cuts."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from flowsched.batch.columns import Batch, Path, kind_of
from flowsched.batch.errors import BatchError, say_column
from flowsched.batch.padding import Padding


def with_lengths(batch: Batch, padding: Mapping[str, Padding]) -> Batch:
    """Return a batch with the lengths columns that its model's padding asks for.

    Each is int64 of shape (rows,), of the same kind and on the same device as its column, and holds the size
    of the column's axis 1. The batch is not changed; where nothing is to be added it is returned as is. A
    lengths column that the worker returned is left alone; a column that is None or not there has no lengths.

    Raises:
        BatchError: a column with lengths is a list, or has only one axis.

    >>> with_lengths({"ids": np.zeros((2, 5))}, {"ids": Padding(0, lengths="width")})["width"]
    array([5, 5])
    """
    wanted = {path: each.lengths for path, each in padding.items() if each.lengths is not None}
    return _add(batch, (), wanted) if wanted and isinstance(batch, dict) else batch


def _add(batch: dict[str, Any], above: Path, wanted: Mapping[str, str]) -> dict[str, Any]:
    added = {}
    for key, value in batch.items():
        path = (*above, key)
        lengths = wanted.get(".".join(path))
        if isinstance(value, dict):
            deeper = _add(value, path, wanted)
            if deeper is not value:
                added[key] = deeper
        elif lengths is not None and value is not None and lengths not in batch:
            added[lengths] = _widths(value, path)
    return {**batch, **added} if added else batch


def _widths(column: Any, path: Path) -> Any:
    kind = kind_of(column, path)
    if kind == "list" or column.ndim < 2:
        found = "is a list" if kind == "list" else "has one axis"
        raise BatchError(
            f"{say_column(path)} declares lengths and {found}",
            "Return rows of shape (width, ...), or declare no lengths for it",
            code="padding-lengths",
            column=".".join(path),
        )
    rows, width = column.shape[:2]
    if kind == "numpy":
        return np.full(rows, width, dtype=np.int64)
    return column.new_full((rows,), width, dtype=sys.modules["torch"].int64)
