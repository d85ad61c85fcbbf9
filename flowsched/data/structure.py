"""Batches of whatever structure: their tensors moved, their rows left out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from flowsched.errors import Problem
from flowsched.sharding import ShardingError

_LEAVES = (str, bytes, int, float, complex, bool, np.generic, type(None))


def move(batch: Any, device: torch.device | str) -> Any:
    """Return the batch with its tensors on a device, which are on their way there when this returns."""
    return _map(batch, lambda leaf: _move_leaf(leaf, device))


def drop_rows(batch: Any) -> Any:
    """Return a batch of no rows, of the same structure, from one with some.

    Rows are the first dimension of tensors and arrays, and the items of lists of anything else. Single numbers and
    strings stay.

    Raises:
        ShardingError: it holds something of which nobody knows the rows.

    >>> drop_rows({"ids": torch.ones(1, 3), "texts": ["a"], "number": torch.tensor([7])})
    {'ids': tensor([], size=(0, 3)), 'texts': [], 'number': tensor([], dtype=torch.int64)}
    """
    return _map(batch, _drop_leaf_rows, is_leaf=_is_list_of_rows)


def _is_list_of_rows(value: Any) -> bool:
    plain = isinstance(value, (list, tuple)) and not hasattr(value, "_fields")
    return plain and all(isinstance(one, _LEAVES) for one in value)


def _drop_leaf_rows(leaf: Any) -> Any:
    if _is_list_of_rows(leaf):
        return type(leaf)()
    if isinstance(leaf, (torch.Tensor, np.ndarray)):
        return leaf[:0] if leaf.ndim else leaf
    if isinstance(leaf, _LEAVES):
        return leaf
    problem = Problem(
        "no-rows",
        "the batch",
        f"this rank has none of its samples, and {type(leaf).__name__} cannot be cut to no rows",
        'Make batches of tensors, arrays, lists, dicts or dataclasses, or give tail="pad" or tail="drop"',
    )
    raise ShardingError("the loader", [problem])


def _move_leaf(leaf: Any, device: torch.device | str) -> Any:
    if isinstance(leaf, torch.Tensor):
        return leaf.to(device, non_blocking=True)
    return leaf


def _map(batch: Any, change: Callable[[Any], Any], is_leaf: Callable[[Any], bool] = lambda _: False) -> Any:
    """Return the batch with each of its leaves changed, and dicts, lists, tuples and dataclasses as they are."""

    def go(value: Any) -> Any:
        return _map(value, change, is_leaf)

    if is_leaf(batch):
        return change(batch)
    if isinstance(batch, Mapping):
        changed = {name: go(value) for name, value in batch.items()}
        return changed if type(batch) is dict else type(batch)(changed)  # type: ignore[call-arg]
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(go, batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(map(go, batch))
    if dataclasses.is_dataclass(batch) and not isinstance(batch, type):
        fields = {one.name: go(getattr(batch, one.name)) for one in dataclasses.fields(batch) if one.init}
        return dataclasses.replace(batch, **fields)
    return change(batch)
