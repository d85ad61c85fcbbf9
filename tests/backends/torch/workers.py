"""Workers of the tests of local ranks; what they observe travels in the rows."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np


def say_process(batch: Any) -> Any:
    """Return the number of the process for each row."""
    return np.full(len(batch), os.getpid())


def add_one(numbers: Any) -> Any:
    return numbers + 1


def double(numbers: Any) -> Any:
    return numbers * 2


def pass_on(batch: Any) -> Any:
    return batch


def widen(numbers: Any) -> Any:
    """Return rows as wide as the largest number says, of their number each."""
    return {"wide": np.repeat(numbers[:, None].astype(np.float64), int(numbers.max()), axis=1)}


def narrow(batch: Any) -> Any:
    return batch["wide"].sum(axis=1)


class Keeps:
    """Keeps every batch that it was given, and says whether those before are as they were."""

    def __init__(self) -> None:
        self.kept: list[tuple[Any, Any]] = []

    def __call__(self, numbers: Any) -> Any:
        intact = all(np.array_equal(batch, copy) for batch, copy in self.kept)
        self.kept.append((numbers, numbers.copy()))
        return np.full(len(numbers), intact)


def wait_long(numbers: Any, folder: Path) -> Any:
    """Leave the number of the process in a folder and take a minute."""
    (folder / str(os.getpid())).touch()
    time.sleep(60)
    return numbers
