"""Workers of any process that meet in a folder: each leaves a mark there, and waits for the marks of others."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import flowsched as fs
from flowsched.testing.workers.failing import UserError, die, raise_at

_LONG = 30.0  # seconds that a worker is busy which nobody releases


def arrive(folder: Path, name: str, times: int = 1) -> None:
    """Leave marks called ``name``; each is one byte, which processes append without losing any."""
    with (folder / f"{name}.marks").open("ab", buffering=0) as marks:
        marks.write(b"." * times)


def arrivals(folder: Path, name: str) -> int:
    """Return how many marks called ``name`` there are."""
    try:
        return os.stat(folder / f"{name}.marks").st_size  # noqa: PTH116 - workers count often
    except FileNotFoundError:
        return 0


def wait_for_arrivals(folder: Path, name: str, count: int, seconds: float = _LONG) -> bool:
    """Wait for so many marks, deaf to cancellation as a request to a server is; return whether they are there."""
    until = time.monotonic() + seconds
    while arrivals(folder, name) < count:
        if time.monotonic() > until:
            return False
        time.sleep(0.002)
    return True


def release(folder: Path) -> None:
    """Let go of all who wait in the folder."""
    arrive(folder, "release")


def hold(numbers: Any, folder: Path) -> Any:
    """Be in the middle of a call until the test says go on."""
    arrive(folder, "held")
    wait_for_arrivals(folder, "release", 1)
    return numbers


def hold_until_cancelled(numbers: Any, context: fs.Context, folder: Path) -> Any:
    """Be in the middle of a call until the step is over, and leave a word that this was noticed."""
    arrive(folder, "held")
    until = time.monotonic() + _LONG
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


def raise_when_others_are_busy(numbers: Any, context: fs.Context, folder: Path) -> Any:
    """Raise in replica 0 once all others are in the middle of a call, which they do not leave on their own."""
    if context.replica:
        arrive(folder, "busy")
        wait_for_arrivals(folder, "release", 1)
        return numbers
    wait_for_arrivals(folder, "busy", context.replicas - 1)
    raise UserError(f"sample {int(numbers[0])} is bad")


def die_when_others_are_busy(numbers: Any, context: fs.Context, folder: Path, tester: int) -> Any:
    """Die likewise."""
    if not context.replica:
        wait_for_arrivals(folder, "busy", context.replicas - 1)
        die("kill", tester)
    arrive(folder, "busy")
    wait_for_arrivals(folder, "release", 1)
    return numbers


def raise_when_held(_: Any, folder: Path, count: int) -> Any:
    """Raise once ``count`` workers are held."""
    wait_for_arrivals(folder, "held", count)
    raise UserError("now")


def raise_at_with_a_mark(numbers: Any, bad: int, folder: Path) -> Any:
    """Leave a mark for each call, and raise in that of one sample."""
    arrive(folder, "called")
    return raise_at(numbers, bad)


def raise_in_turn(_: Any, context: fs.Context, folder: Path) -> Any:
    """Raise in replica 0, and after that, because of it, in replica 1."""
    if context.replica:
        arrive(folder, "second")
        until = time.monotonic() + _LONG
        while not context.cancelled() and time.monotonic() < until:
            time.sleep(0.002)
        raise UserError("second")
    wait_for_arrivals(folder, "second", 1)
    raise UserError("first")


class FailsWhileOthersBuild:
    """Raises in the constructor of replica 0 while those of the others are under way."""

    def __init__(self, context: fs.ReplicaContext, folder: Path) -> None:
        if context.replica:
            arrive(folder, "building")
            wait_for_arrivals(folder, "release", 1)
        else:
            wait_for_arrivals(folder, "building", context.replicas - 1)
            raise UserError("the weights are missing")

    def __call__(self, numbers: Any) -> Any:
        return numbers


def meet_all(numbers: Any, folder: Path, name: str, count: int, seconds: float) -> Any:
    """Go on when ``count`` calls are here at once; return whether they came in time."""
    arrive(folder, name)
    return [wait_for_arrivals(folder, name, count, seconds)] * len(numbers)


class MeetsWhileBuilt:
    """Waits in its constructor for that of all other replicas, and returns whether they came."""

    def __init__(self, context: fs.ReplicaContext, folder: Path, seconds: float) -> None:
        arrive(folder, "building")
        self.met = wait_for_arrivals(folder, "building", context.replicas, seconds)

    def __call__(self, numbers: Any) -> Any:
        return [self.met] * len(numbers)


class Marked:
    """Leaves a mark for each replica that is built."""

    def __init__(self, folder: Path) -> None:
        arrive(folder, "built")

    def __call__(self, numbers: Any) -> Any:
        return numbers


def leave_a_mark(numbers: Any, folder: Path) -> Any:
    """Leave a mark when the call ends, which it does late."""
    time.sleep(0.01)
    arrive(folder, "ended")
    return numbers


def count_marks(numbers: Any, folder: Path) -> Any:
    """Return how many calls of others had ended when this one began."""
    return [arrivals(folder, "ended")] * len(numbers)


def wait_for_a_reader_of_the_first(numbers: Any, context: fs.Context, folder: Path, seconds: float) -> Any:
    """End the first call at once, and each later one when the first has been read; return whether it was."""
    read = context.start == 0 or wait_for_arrivals(folder, "read", 1, seconds)
    return [read] * len(numbers)


def wait_for_readers_of_the_first_wave(
    numbers: Any, context: fs.Context, folder: Path, readers: int, seconds: float
) -> Any:
    """End the first call of each replica at once, and the later ones when ``readers`` calls have begun."""
    first = context.start < context.replicas * len(numbers)
    read = first or wait_for_arrivals(folder, "read", readers, seconds)
    return [read] * len(numbers)


def pass_on_with_a_mark(batch: Any, folder: Path) -> Any:
    arrive(folder, "read")
    return batch
