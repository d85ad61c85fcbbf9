"""Columns of every kind, each made when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest

ROWS = 23
NUMBERS = np.random.default_rng(0).integers(0, 200, (ROWS, 3))
NUMPY_DTYPES = [
    "?",
    "i1",
    "u1",
    "i2",
    ">i4",
    "i8",
    "u8",
    "f2",
    "f4",
    "f8",
    ">f8",
    "c8",
    "c16",
    "U5",
    "S3",
    "O",
]
TORCH_DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
]


def column_named(name: str) -> Any:
    """Return the column called ``name``; a test that asks for one of torch where that is missing is skipped."""
    return COLUMNS[name]()


def _torch() -> Any:
    return pytest.importorskip("torch", reason="torch is missing, so its columns are not tried")


def _numpy(dtype: str) -> Any:
    return (NUMBERS % 7).astype(dtype)


def _tensor(dtype: str) -> Any:
    torch = _torch()
    return torch.from_numpy(NUMBERS % 7).to(getattr(torch, dtype))


def _times() -> Any:
    return np.datetime64("2026-01-01T00:00:00", "ns") + np.arange(ROWS).astype("timedelta64[ns]")


def _odd_nans() -> Any:
    return (np.arange(ROWS, dtype=np.uint64) + 0x7FF8000000000001).view(np.float64)


def _records() -> Any:
    return np.array([(i, i / 3) for i in range(ROWS)], dtype=[("id", "i4"), ("score", "f8")])


def _mixed_dict() -> Any:
    torch = _torch()
    score = torch.rand(ROWS, generator=torch.Generator().manual_seed(0))
    return {"ids": NUMBERS, "text": ["a"] * ROWS, "score": score}


def _nested() -> Any:
    return {"answer": {"ids": NUMBERS, "meta": {"who": ["x"] * ROWS}}, "mask": NUMBERS > 90}


COLUMNS: Mapping[str, Callable[[], Any]] = {
    **{f"numpy {dtype}": partial(_numpy, dtype) for dtype in NUMPY_DTYPES},
    "numpy datetimes": _times,
    "numpy durations": lambda: _times() - _times()[0],
    "numpy with bits in its nans": _odd_nans,
    "numpy of one axis": lambda: NUMBERS[:, 0],
    "numpy of four axes": lambda: NUMBERS.reshape(ROWS, 3, 1, 1),
    "numpy with a stride": lambda: np.asfortranarray(NUMBERS)[:, ::2],
    "numpy of trailing size zero": lambda: np.zeros((ROWS, 0), np.float32),
    "numpy records": _records,
    **{f"torch {dtype}": partial(_tensor, dtype) for dtype in TORCH_DTYPES},
    "torch of one axis": lambda: _torch().arange(ROWS),
    "torch transposed": lambda: _torch().from_numpy(NUMBERS.T.copy()).T,
    "torch of trailing size zero": lambda: _torch().zeros((ROWS, 2, 0), dtype=_torch().bfloat16),
    "list of texts": lambda: [f"prompt {i}" for i in range(ROWS)],
    "list of nothing": lambda: [None] * ROWS,
    "ragged list of lists": lambda: [list(range(i % 4)) for i in range(ROWS)],
    "ragged list of arrays": lambda: [np.arange(i % 4, dtype=np.float32) for i in range(ROWS)],
    "ragged list of tensors": lambda: [_torch().arange(i % 4) for i in range(ROWS)],
    "list of dicts and tuples": lambda: [{"turn": i, "said": ("yes", i)} for i in range(ROWS)],
    "a dict": _mixed_dict,
    "nested dicts": _nested,
    "a dict with a None": lambda: {"ids": NUMBERS, "image": None, "more": {"audio": None}},
    "a dict with an empty dict": lambda: {"ids": NUMBERS, "extras": {}},
    "a dict whose keys are no identifiers": lambda: {"model.layers.0": NUMBERS, "a key": NUMBERS[:, 0]},
}
