"""A side of a comparison in a process of its own, which times itself when it is told to."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from multiprocessing.connection import Connection
from typing import Self

from benchmarks.processes import count_cpu
from benchmarks.timing import Timing, time_runs

Step = Callable[[], object]
Bring = Callable[[], AbstractContextManager[Mapping[str, Step]]]
"""Brings a side up; in the ``with`` statement stand the steps that it can run, by name. It must be picklable."""


class Apart:
    """A side in a fresh process; use it in a ``with`` statement.

    Args:
        bring: brings the side up, there.
        count_all: whether processor time is that of all processes there, and not only of the one that drives.

    Raises:
        RuntimeError: it could not be brought up, or a step failed; says why.
    """

    def __init__(self, bring: Bring, *, count_all: bool = False) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(theirs, bring, count_all))
        self._process.start()
        theirs.close()
        self._read()

    def timer(self, name: str) -> Callable[[int], Timing]:
        """Return what runs the step of this name so many times in a row, and returns how long that took there."""
        return partial(self._time, name)

    def _time(self, name: str, repeats: int) -> Timing:
        self._pipe.send((name, repeats))
        timing = self._read()
        if timing is None:
            raise RuntimeError("a side of the comparison was told to go on and did not")
        return timing

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._pipe.close()
        self._process.join(30)
        if self._process.is_alive():
            self._process.kill()

    def _read(self) -> Timing | None:
        try:
            answer: Timing | str | None = self._pipe.recv()
        except EOFError:
            raise RuntimeError("a side of the comparison died; what it said stands above") from None
        if isinstance(answer, str):
            raise RuntimeError(f"a side of the comparison failed: {answer}")
        return answer


def _serve(pipe: Connection, bring: Bring, count_all: bool) -> None:
    try:
        with bring() as steps:
            pipe.send(None)
            while True:
                name, repeats = pipe.recv()
                pipe.send((_time_all if count_all else time_runs)(steps[name], repeats))
    except EOFError:
        pass  # the other end is closed: it is over
    except Exception as error:  # noqa: BLE001 - it is raised at the other end
        pipe.send(f"{type(error).__name__}: {error}")


def _time_all(run: Step, repeats: int) -> Timing:
    """Time some runs in a row, with the processor time of all processes."""
    before = count_cpu()
    timing = time_runs(run, repeats)
    return Timing(timing.wall, (count_cpu() - before) / repeats)
