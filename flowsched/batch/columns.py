"""What is a column, and which columns a batch holds.

Torch is never imported here: a tensor can only exist where somebody else has imported it.
"""

from __future__ import annotations

import sys
from typing import Any, Literal, TypeAlias

import numpy as np

from flowsched.batch.errors import BatchError

Batch: TypeAlias = Any
"""What a worker takes and returns: a column, a dict of str to batch, or None (a worker with no output).

A column is a numpy array or a torch tensor with at least one axis, or a list; its first axis is the rows.
None inside a dict means "no value here" and is passed through. Typed as Any: torch may not be installed.
"""

Path: TypeAlias = tuple[str, ...]
"""The keys that lead to a column; empty for a bare one. Joined with dots where people read it."""

Kind: TypeAlias = Literal["numpy", "torch", "list", "none", "empty"]
"""What is found at a path: one of three kinds of column, or a None or an empty dict, which have no rows."""


Leaf: TypeAlias = tuple[Path, Kind, Any]
"""Whatever is not a dict with something in it: where it is, what it is, itself."""


def leaves(batch: Batch) -> list[Leaf]:
    """Return the leaves of a batch in the order in which it holds them.

    Raises:
        BatchError: something is not a column, or a key is not a non-empty str.

    >>> [kind for path, kind, value in leaves({"ids": np.zeros((2, 3)), "text": ["a", "b"], "note": None})]
    ['numpy', 'list', 'none']
    """
    found: list[Leaf] = []
    _collect(batch, (), found)
    return found


def kind_of(value: Batch, path: Path) -> Kind:
    """Return what stands at ``path`` of a batch, a dict with something in it excepted.

    Raises:
        BatchError: it is neither a column nor None nor an empty dict.
    """
    if type(value) is np.ndarray:
        if value.ndim:
            return "numpy"
    elif isinstance(value, list):
        return "list"
    elif value is None:
        return "none"
    elif isinstance(value, dict):
        return "empty"
    elif is_tensor(value):
        if value.ndim and not value.is_nested and value.layout is sys.modules["torch"].strided:
            return "torch"
    # A masked array is refused because joining and padding would lose the mask without a word.
    elif isinstance(value, np.ndarray) and value.ndim and not isinstance(value, np.ma.MaskedArray):
        return "numpy"
    raise BatchError.not_a_column(value, path)


def is_tensor(value: object) -> bool:
    """Return whether ``value`` is a torch tensor, without importing torch."""
    # While another thread is still importing torch, the module is there and its names are not.
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    return tensor is not None and isinstance(value, tensor)


def is_bare_tensor(value: Any) -> bool:
    """Return whether ``value`` is a torch tensor that is a column, and of torch's own class."""
    torch: Any = sys.modules.get("torch")
    if type(value) is not getattr(torch, "Tensor", None):
        return False
    return value.layout is torch.strided and not value.is_nested and value.ndim > 0


def _collect(batch: Batch, path: Path, found: list[Leaf]) -> None:
    if isinstance(batch, dict) and batch:
        for key, value in batch.items():
            if not isinstance(key, str) or not key:
                raise BatchError.not_a_key(key, path)
            if isinstance(value, dict):
                _collect(value, (*path, key), found)
            else:
                found.append(((*path, key), kind_of(value, (*path, key)), value))
    else:
        found.append((path, kind_of(batch, path), batch))
