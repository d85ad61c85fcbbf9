"""A side in a process of its own times itself, and says what went wrong there."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

import pytest

from benchmarks.apart import Apart, Step
from benchmarks.timing import interleave_timers


@contextmanager
def _sleeper() -> Iterator[Mapping[str, Step]]:
    yield {"short": lambda: time.sleep(0.001), "long": lambda: time.sleep(0.02)}


def _broken() -> AbstractContextManager[Mapping[str, Step]]:
    raise LookupError("no such peer")


@contextmanager
def _dying() -> Iterator[Mapping[str, Step]]:
    yield {"step": lambda: os._exit(3)}


def _divide_by_zero() -> float:
    return 1 / 0


@contextmanager
def _failing() -> Iterator[Mapping[str, Step]]:
    yield {"step": _divide_by_zero}


def test_a_side_apart_times_the_step_that_it_is_told_to_run() -> None:
    with Apart(_sleeper) as side:
        timings = interleave_timers({name: side.timer(name) for name in ("short", "long")}, 3, 2)
    assert all(timing.wall >= 0.001 for timing in timings["short"])
    assert all(0.02 <= timing.wall < 2 for timing in timings["long"])


def test_a_side_that_cannot_be_brought_up_says_why() -> None:
    with pytest.raises(RuntimeError, match="LookupError: no such peer"):
        Apart(_broken)


def test_a_step_that_fails_apart_says_why() -> None:
    with Apart(_failing) as side, pytest.raises(RuntimeError, match="ZeroDivisionError"):
        side.timer("step")(1)


def test_a_side_that_dies_is_noticed() -> None:
    with Apart(_dying) as side, pytest.raises(RuntimeError, match="died"):
        side.timer("step")(1)
