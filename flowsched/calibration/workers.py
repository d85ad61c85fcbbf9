"""Workers that do nothing, so that all the time of a step is the backend's own."""

from __future__ import annotations

from typing import Any

import numpy as np


def pass_on(numbers: Any) -> Any:
    """Return the very batch that was read."""
    return numbers


class Rows:
    """Returns rows of a fixed width that were made beforehand, so that no call allocates any."""

    def __init__(self, rows: int, width: int) -> None:
        self._made = np.zeros((rows, width), np.uint8)

    def __call__(self, numbers: Any) -> Any:
        return self._made[: len(numbers)]


def count(rows: Any) -> Any:
    """Return one number for each row, without looking at the rows."""
    return np.arange(len(rows))
