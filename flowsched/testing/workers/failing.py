"""Workers that raise, in every way in which a worker can."""

from __future__ import annotations

import os
import signal
import time
from typing import Any, NoReturn

import numpy as np

import flowsched as fs


class UserError(Exception):
    """What a worker of somebody else's raises."""


def raise_at(numbers: Any, bad: int) -> Any:
    if bad in numbers:
        raise UserError(f"{bad} is bad")
    return numbers


def raise_from_a_cause(_: Any) -> NoReturn:
    try:
        found: dict[str, int] = {}
        found["weights"]
    except KeyError as error:
        raise UserError("no weights") from error
    raise AssertionError("a dict of nothing has weights")


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


class UnspeakableError(Exception):
    """An exception that ends the program when it is printed."""

    def __str__(self) -> str:
        raise SystemExit("not even to be told")


def raise_unspeakable(_: Any) -> NoReturn:
    raise UnspeakableError


class BuildsUnspeakably:
    def __init__(self) -> None:
        raise UnspeakableError

    def __call__(self, batch: Any) -> Any:
        return batch


def raise_at_length(_: Any) -> NoReturn:
    raise ValueError("x" * 1_000_000)


class FailsToBuild:
    """Raises in the constructor of one replica."""

    def __init__(
        self, context: fs.ReplicaContext, bad: int = 0, error: type[BaseException] = UserError
    ) -> None:
        if context.replica == bad:
            raise error("the weights are missing")

    def __call__(self, numbers: Any) -> Any:
        return numbers


def fail_late(batch: Any) -> Any:
    if batch[0] == 2:  # the first call of the second replica
        time.sleep(0.1)
        raise ValueError("boom")
    return batch


def die(how: str, tester: int) -> NoReturn:
    """End this process so that nothing in it can catch it; but not ``tester``, the process that runs the tests."""
    if os.getpid() == tester:
        raise AssertionError(
            "replicas are no processes of their own here: declare that Feature.ISOLATION is lacking"
        )
    if how == "exit":
        os._exit(3)
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)
    raise AssertionError("a killed process goes on")


def die_at(numbers: Any, bad: int, how: str, tester: int) -> Any:
    if bad in numbers:
        die(how, tester)
    return numbers


class DiesWhileBuilt:
    """Ends the process of one replica in its constructor."""

    def __init__(self, context: fs.ReplicaContext, bad: int, tester: int) -> None:
        if context.replica == bad:
            die("exit", tester)

    def __call__(self, numbers: Any) -> Any:
        return numbers


def enormous(batch: Any) -> Any:
    """Return rows that take no memory until they are joined, and then more than there is."""
    return np.broadcast_to(np.zeros(1), (len(batch), 2**40))


def endless(_: Any) -> Any:
    batch: dict[str, Any] = {}
    batch["again"] = batch
    return batch
