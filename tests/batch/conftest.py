"""What the tests of batches share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch


def _same_bits(left: Any, right: Any) -> bool:
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and list(left) == list(right)
            and all(_same_bits(left[key], right[key]) for key in left)
        )
    if isinstance(left, list):
        return (
            isinstance(right, list)
            and len(left) == len(right)
            and all(one is other for one, other in zip(left, right, strict=True))
        )
    if isinstance(left, np.ndarray):
        if not isinstance(right, np.ndarray) or left.dtype != right.dtype or left.shape != right.shape:
            return False
        if left.dtype.hasobject:
            return all(one is other for one, other in zip(left.ravel(), right.ravel(), strict=True))
        return left.tobytes() == right.tobytes()
    if isinstance(left, torch.Tensor):
        if not isinstance(right, torch.Tensor) or left.dtype != right.dtype or left.shape != right.shape:
            return False
        bits = [tensor.detach().contiguous().reshape(-1).view(torch.uint8) for tensor in (left, right)]
        return torch.equal(*bits)
    return left is right


@pytest.fixture(scope="session")
def same_bits() -> Callable[[Any, Any], bool]:
    """Return whether two batches agree in keys, their order, kinds, dtypes, shapes, and bits or elements."""
    return _same_bits
