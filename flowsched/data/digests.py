"""Samples told apart by what they hold, where nothing says which ones they are."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

_BYTES = 16  # two of a million million samples are taken for one with a chance of 1e-15


class _Hash(Protocol):
    def update(self, data: bytes, /) -> None: ...


def digest(sample: Any) -> NDArray[np.int64]:
    """Return (2,) numbers that are the same for samples that hold the same, on every rank.

    Raises:
        TypeError: it holds what cannot be pickled.

    Examples:
        >>> bool((digest({"a": [1, "x"]}) == digest({"a": [1, "x"]})).all())
        True
        >>> bool((digest(torch.tensor([1, 2])) == digest(torch.tensor([[1, 2]]))).all())
        False
    """
    state = blake2b(digest_size=_BYTES)
    _feed(state, sample)
    return np.frombuffer(state.digest(), dtype=np.int64)


def digest_samples(samples: Any) -> torch.Tensor:
    """Return (n, 2) digests: of each sample of a list, or of each row of a batch; any loader can carry them."""
    rows = samples if isinstance(samples, list) else list(rows_of(samples))
    return torch.from_numpy(np.array([digest(row) for row in rows], dtype=np.int64).reshape(-1, 2))


def rows_of(batch: Any) -> Iterator[Any]:
    """Yield the rows of a batch as a loader makes it.

    A mapping holds columns. So does a list or tuple of columns of the same length (tensors, arrays, and what holds
    them). Other lists hold rows.

    Raises:
        TypeError: it holds no rows, such as a number.

    Examples:
        >>> list(rows_of({"x": torch.tensor([1, 2]), "name": ["a", "b"]}))
        [{'x': tensor(1), 'name': 'a'}, {'x': tensor(2), 'name': 'b'}]
        >>> len(list(rows_of([torch.zeros(3, 2), torch.zeros(3)]))), len(list(rows_of(["a", "b"])))
        (3, 2)
    """
    if isinstance(batch, Mapping):
        yield from _rows_of_columns(list(batch), [list(rows_of(column)) for column in batch.values()])
    elif isinstance(batch, torch.Tensor | np.ndarray):
        if batch.ndim == 0:
            raise TypeError("a batch is a single number, which has no rows")
        yield from batch
    elif isinstance(batch, list | tuple):
        yield from _rows_of_sequence(batch)
    else:
        raise TypeError(f"a batch is a {type(batch).__name__}, whose rows are not known")


def _rows_of_sequence(batch: Sequence[Any]) -> Iterator[Any]:
    columns = [part for part in batch if _is_column(part)]
    lengths = {_length(part) for part in columns}
    if batch and len(columns) == len(batch) and len(lengths) == 1:
        yield from _rows_of_columns(range(len(batch)), [list(rows_of(part)) for part in batch])
    else:
        yield from batch


def _rows_of_columns(names: Sequence[Any], columns: Sequence[Sequence[Any]]) -> Iterator[dict[Any, Any]]:
    for values in zip(*columns, strict=True):
        yield dict(zip(names, values, strict=True))


def _is_column(part: Any) -> bool:
    return isinstance(part, torch.Tensor | np.ndarray) and part.ndim > 0


def _length(part: Any) -> int:
    return len(part)


def _feed(state: _Hash, value: Any) -> None:
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        value = value.float().numpy() if value.dtype == torch.bfloat16 else value.numpy()
    if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        state.update(f"{value.dtype}{value.shape};".encode())
        state.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, Mapping):
        state.update(f"mapping{len(value)};".encode())
        for key, inner in value.items():
            _feed(state, key)
            _feed(state, inner)
    elif isinstance(value, list | tuple):
        state.update(f"list{len(value)};".encode())
        for inner in value:
            _feed(state, inner)
    else:
        _feed_other(state, value)


def _feed_other(state: _Hash, value: Any) -> None:
    try:
        data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else pickle.dumps(value)
    except Exception as error:
        raise TypeError(f"a {type(value).__name__} cannot be told from others: {error}") from error
    state.update(f"{type(value).__name__}{len(data)};".encode())
    state.update(data)
