"""Workers of the Ray tests. They stand in a module, since they run in other processes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import ray

import flowsched as fs


def say_place(numbers: Any, context: fs.Context) -> Any:
    """Return which replica ran where."""
    rows = len(numbers)
    here: Any = ray.get_runtime_context()
    return {
        "replica": np.full(rows, context.replica),
        "place": [here.get_node_id()] * rows,
        "device": [context.device] * rows,
        "visible": [os.environ.get("CUDA_VISIBLE_DEVICES")] * rows,
        "word": [os.environ.get("FLOWSCHED_WORD")] * rows,
    }


def pass_on(batch: Any, *_: Any) -> Any:
    return batch


def add_one(numbers: Any) -> Any:
    return numbers + 1


def end_process(numbers: Any, context: fs.Context, bad: int, code: int = 7) -> Any:
    """End the process of one replica, as a crash in a library would."""
    if context.replica == bad:
        os._exit(code)
    return numbers


def end_first_time(numbers: Any, context: fs.Context, folder: Path) -> Any:
    """End the process of replica 0 the first time it is called."""
    if context.replica == 0 and not (folder / "ended").exists():
        (folder / "ended").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return numbers


class CountsBuilds:
    """Leaves a file each time it is built."""

    def __init__(self, context: fs.ReplicaContext, folder: Path) -> None:
        self.folder = folder
        (folder / f"built-{context.replica}-{os.getpid()}").touch()

    def __call__(self, numbers: Any, context: fs.Context) -> Any:
        return end_first_time(numbers, context, self.folder)


class EndsWhileBuilt:
    """Ends the process in its constructor."""

    def __init__(self) -> None:
        os._exit(3)

    def __call__(self, numbers: Any) -> Any:
        return numbers


def hold(numbers: Any, folder: Path) -> Any:
    """Be in a call until the test says go on, for thirty seconds at most."""
    (folder / f"held-{os.getpid()}").touch()
    until = time.monotonic() + 30
    while not (folder / "release").exists() and time.monotonic() < until:
        time.sleep(0.01)
    return numbers


def say_pid(numbers: Any) -> Any:
    return np.full(len(numbers), os.getpid())


class Grows:
    """Makes two rows of each; its other method, and the node that nobody reads, pass on."""

    def __call__(self, numbers: Any) -> Any:
        return np.repeat(numbers, 2) * 10

    def left(self, numbers: Any) -> Any:
        return numbers + 1

    def unread(self, numbers: Any) -> Any:
        return numbers


class Remembers:
    """Keeps all that it was given, and says whether it has changed since."""

    def __init__(self) -> None:
        self.given: list[tuple[Any, Any]] = []

    def __call__(self, numbers: Any) -> Any:
        self.given.append((numbers, numbers.tolist()))
        for kept, before in self.given:
            if kept.tolist() != before:
                raise ValueError(f"{before} has become {kept.tolist()}")
        return numbers


def add_all(left: Any, top: Any, x: Any) -> Any:
    return left + top + x


def widen(numbers: Any, width: int) -> Any:
    return np.repeat(numbers[:, None], width, axis=1)


def raise_while_others_hold(numbers: Any, context: fs.Context, folder: Path) -> Any:
    """Raise in replica 0 once the other one is in a call, which it leaves when it is told that the step is over."""
    until = time.monotonic() + 30
    if context.replica:
        (folder / "held").touch()
        while not context.cancelled() and time.monotonic() < until:
            time.sleep(0.005)
        (folder / f"cancelled-{context.replica}").touch()
        return numbers
    while not (folder / "held").exists() and time.monotonic() < until:
        time.sleep(0.005)
    (folder / "raised").touch()
    raise ValueError("bad")


def other_dtype_in_another_replica(numbers: Any, context: fs.Context) -> Any:
    return numbers.astype(np.float32) if context.replica else numbers


class Counts:
    """Returns which of its calls this is, from 1."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, numbers: Any) -> Any:
        self.calls += 1
        return np.full(len(numbers), self.calls)


def make_megabytes(numbers: Any, folder: Path) -> Any:
    """Return a megabyte for each row, and leave a mark."""
    for number in numbers:
        (folder / f"made-{number}").touch()
    return np.zeros((len(numbers), 1_000_000), np.uint8)


def count_made(rows: Any, folder: Path) -> Any:
    """Return how many rows had been made when a call began, after a while."""
    made = len(list(folder.glob("made-*")))
    time.sleep(0.02)
    return np.full(len(rows), made)


class Unreadable:
    """Raises when it is unpickled, as a tensor of a device that is not there does."""

    def __init__(self, kind: type[Exception]) -> None:
        self.kind = kind

    def __setstate__(self, state: dict[str, Any]) -> None:
        raise state["kind"]("no such device")


class MakesUnreadable:
    """Returns its rows as a list in which one number has become what cannot be unpickled."""

    def __init__(self, kind: type[Exception], bad: int) -> None:
        self.kind, self.bad = kind, bad

    def __call__(self, numbers: Any) -> Any:
        return [Unreadable(self.kind) if number == self.bad else number for number in numbers]


def count_rows(rows: Any) -> Any:
    return np.full(len(rows), len(rows))


def return_nothing(_: Any) -> None:
    return None


def say_whether_nothing(batch: Any, context: fs.Context) -> Any:
    return ["nothing" if batch is None else type(batch).__name__] * (context.stop - context.start)
