"""Whether two batches are the same, bit for bit."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def assert_same(left: Any, right: Any, place: str = "the batch") -> None:
    """Fail, naming the place, unless both have the same keys, kinds, dtypes, shapes and bits.

    The order of keys does not matter. Elements of lists are compared likewise: nothing need be identical, since
    other backends carry batches to other processes.
    """
    assert type(left) is type(right), f"{place} is a {type(left).__name__} and a {type(right).__name__}"
    if isinstance(left, dict):
        assert sorted(left) == sorted(right), f"{place} has keys {sorted(left)} and {sorted(right)}"
        for key in left:
            assert_same(left[key], right[key], f"{place}[{key!r}]")
    elif isinstance(left, list | tuple):
        assert len(left) == len(right), f"{place} has {len(left)} and {len(right)} elements"
        for at, (one, other) in enumerate(zip(left, right, strict=True)):
            assert_same(one, other, f"{place}[{at}]")
    elif isinstance(left, np.ndarray):
        _assert_same_arrays(left, right, place)
    elif _is_tensor(left):
        what = [(tensor.dtype, tuple(tensor.shape)) for tensor in (left, right)]
        assert what[0] == what[1], f"{place} is {what[0]} and {what[1]}"
        assert _bytes_of(left) == _bytes_of(right), f"{place} is {left} and {right}"
    elif isinstance(left, float):
        assert np.float64(left).tobytes() == np.float64(right).tobytes(), f"{place} is {left} and {right}"
    else:
        assert left == right, f"{place} is {left!r} and {right!r}"


def _assert_same_arrays(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any], place: str) -> None:
    what = [(array.dtype, array.shape) for array in (left, right)]
    assert what[0] == what[1], f"{place} is {what[0]} and {what[1]}"
    if left.dtype.hasobject:
        assert_same(left.tolist(), right.tolist(), place)
    else:
        assert left.tobytes() == right.tobytes(), f"{place} is {left} and {right}"


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")  # whoever has a tensor has loaded it
    return torch is not None and isinstance(value, torch.Tensor)


def _bytes_of(tensor: Any) -> bytes:
    import torch

    flat = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    data: bytes = flat.numpy().tobytes()
    return data
