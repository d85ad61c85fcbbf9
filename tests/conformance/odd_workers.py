"""Workers that misbehave, or take long, in one way each."""

from __future__ import annotations

import time
import uuid
import weakref
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

import flowsched as fs


class UserError(Exception):
    """What a worker of somebody else's raises."""


def wait_for(path: Path, seconds: float = 30.0) -> None:
    """Wait until a file exists, as a request to a server would: deaf to cancellation."""
    until = time.monotonic() + seconds
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.002)


def arrive(folder: Path, name: str) -> None:
    (folder / f"{name}-{uuid.uuid4().hex}").touch()


def wait_for_arrivals(folder: Path, name: str, count: int, seconds: float = 30.0) -> None:
    until = time.monotonic() + seconds
    while len(list(folder.glob(f"{name}-*"))) < count and time.monotonic() < until:
        time.sleep(0.002)


def raise_when_others_are_busy(numbers: Any, context: fs.Context, folder: Path) -> Any:
    """Raise in replica 0 once all others are in the middle of a call, which they do not leave on their own."""
    if context.replica:
        arrive(folder, "busy")
        wait_for(folder / "release")
        return numbers
    wait_for_arrivals(folder, "busy", context.replicas - 1)
    raise UserError(f"sample {int(numbers[0])} is bad")


def hold(numbers: Any, folder: Path) -> Any:
    """Be in the middle of a call until the test says go on."""
    arrive(folder, "held")
    wait_for(folder / "release")
    return numbers


def hold_until_cancelled(numbers: Any, context: fs.Context, folder: Path) -> Any:
    """Be in the middle of a call until the step is over, and leave a word that this was noticed."""
    arrive(folder, "held")
    until = time.monotonic() + 30
    while not context.cancelled() and time.monotonic() < until:
        time.sleep(0.002)
    arrive(folder, "cancelled" if context.cancelled() else "forgotten")
    return numbers


class HeldWhileBuilt:
    """Is in the middle of its constructor until the test says go on."""

    def __init__(self, folder: Path) -> None:
        hold(None, folder)

    def __call__(self, numbers: Any) -> Any:
        return numbers


def raise_at(numbers: Any, bad: int) -> Any:
    if bad in numbers:
        raise UserError(f"{bad} is bad")
    return numbers


def exit_at_once(_: Any) -> NoReturn:
    raise SystemExit(3)


def interrupt_at_once(_: Any) -> NoReturn:
    raise KeyboardInterrupt


class UnprintableError(Exception):
    """An exception that raises another one when it is printed."""

    def __str__(self) -> str:
        raise RuntimeError("this error cannot be printed")


def raise_unprintable(_: Any) -> NoReturn:
    raise UnprintableError


class FailsToBuild:
    """Raises in the constructor of one replica."""

    def __init__(
        self, context: fs.ReplicaContext, bad: int = 0, error: type[BaseException] = UserError
    ) -> None:
        if context.replica == bad:
            raise error("the weights are missing")

    def __call__(self, numbers: Any) -> Any:
        return numbers


class FailsWhileOthersBuild:
    """Raises in the constructor of replica 0 while those of the others are under way."""

    def __init__(self, context: fs.ReplicaContext, folder: Path) -> None:
        if context.replica:
            arrive(folder, "building")
            wait_for(folder / "release")
        else:
            wait_for_arrivals(folder, "building", context.replicas - 1)
            raise UserError("the weights are missing")

    def __call__(self, numbers: Any) -> Any:
        return numbers


def one_row_more(numbers: Any) -> Any:
    return np.concatenate([numbers, numbers[:1]])


def one_number(numbers: Any) -> Any:
    return numbers.sum()


def no_axes(numbers: Any) -> Any:
    return np.array(numbers.sum())


def no_axes_tensor(numbers: Any) -> Any:
    import torch  # takes seconds, which the programs that are interrupted need not wait

    return torch.tensor(int(numbers.sum()))


def some_text(_: Any) -> Any:
    return "fine"


def a_tuple(numbers: Any) -> Any:
    return numbers, numbers


def a_nested_tuple(numbers: Any) -> Any:
    return {"scores": {"all": (1,) * len(numbers)}}


def a_generator(numbers: Any) -> Any:
    return (number for number in numbers)


def unequal_columns(numbers: Any) -> Any:
    return {"long": numbers, "short": numbers[1:]}


def numbered_key(numbers: Any) -> Any:
    return {1: numbers}


def other_keys_later(numbers: Any) -> Any:
    return {"early" if numbers[0] == 0 else "late": numbers}


def other_dtype_later(numbers: Any) -> Any:
    return numbers if numbers[0] == 0 else numbers.astype(np.float32)


def other_kind_later(numbers: Any) -> Any:
    return numbers if numbers[0] == 0 else numbers.tolist()


def masked_later(numbers: Any) -> Any:
    return numbers if numbers[0] < 4 else np.ma.masked_greater(numbers, 5)


def none_later(numbers: Any) -> Any:
    return numbers if numbers[0] == 0 else None


class Alive:
    """Says how many of the batches that it made before, in this process, are still alive when a call begins."""

    def __init__(self, column: str, pause: float = 0.0) -> None:
        self.column = column
        self.pause = pause
        self.made: list[weakref.ref[Any]] = []

    def __call__(self, batch: Any) -> Any:
        self.made = [made for made in self.made if made() is not None]
        time.sleep(self.pause)
        made = batch["x"] + 1
        self.made.append(weakref.ref(made))
        return {**batch, "x": made, self.column: np.full(len(made), len(self.made))}
