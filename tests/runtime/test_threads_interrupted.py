"""An interruption may arrive at any point of a session's life: nothing hangs, nothing is left, nobody is misled.

Python raises KeyboardInterrupt in the main thread where it enters a function, comes back from one of C, or waits
in one. Each test raises it at the first such point of the code that runs steps, then at the second, until no point
is left.
"""

from __future__ import annotations

import gc
import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import flowsched_threads.backend
import flowsched_threads.progress
import flowsched_threads.replicas
import numpy as np
import pytest

import flowsched as fs
from flowsched import session
from flowsched.errors import SessionError

pytestmark = pytest.mark.timeout(60)

GRAPH = fs.Graph(
    "two",
    sources=["x"],
    nodes=[fs.Node("a", ["x"], replicas=2, batch_size=1), fs.Node("b", ["a"], batch_size=None)],
)
INPUTS = {"x": np.arange(4)}
WATCHED = {
    str(module.__file__)
    for module in (session, flowsched_threads.backend, flowsched_threads.replicas, flowsched_threads.progress)
}


def _add_one(numbers: Any) -> Any:
    return numbers + 1


MODELS: dict[str, Any] = {"a": _add_one, "b": _add_one}


class _Interruption:
    """A profile function that raises KeyboardInterrupt at one point; only its own thread sees it."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, frame: FrameType, event: str, called: object) -> None:
        waits = event == "c_call" and getattr(called, "__name__", "") == "get"
        if (event in ("call", "c_return") or waits) and frame.f_code.co_filename in WATCHED:
            self.left -= 1
            if self.left < 0:
                sys.setprofile(None)
                raise KeyboardInterrupt


def _interrupted_at_each_point(life: Callable[[], None]) -> Iterator[int]:
    """Live that life again and again, each time up to a later point; yield what has just been interrupted."""
    life()  # once whole, so that caches are filled and every life after it is the same
    for at in itertools.count():
        sys.setprofile(_Interruption(at))
        try:
            life()
        except KeyboardInterrupt:
            pass
        else:
            return
        finally:
            sys.setprofile(None)
        yield at  # here, where the exception no longer holds the frames that it has passed


def _wait_for_threads_to_end(before: set[threading.Thread]) -> list[str]:
    """Return the names of the threads that are still there after a while."""
    began = time.monotonic()
    while left := [thread for thread in threading.enumerate() if thread not in before and thread.is_alive()]:
        if time.monotonic() > began + 10:
            return [thread.name for thread in left]
        if time.monotonic() > began + 0.05:
            gc.collect()
        time.sleep(0.001)
    return []


OVER = "this session is over: step 0 failed with KeyboardInterrupt. Start another one with fs.start(...)"


def _run_again(live: fs.Session) -> str:
    """Run a step; return what the session says against it."""
    try:
        out = live.run(INPUTS)
    except SessionError as error:
        return str(error)
    assert out["b"].tolist() == [2, 3, 4, 5]
    return ""


def test_leaving_the_with_statement_leaves_no_thread_wherever_it_is_interrupted() -> None:
    def life() -> None:
        with fs.start(GRAPH, MODELS) as live:
            live.run(INPUTS)
            live.run(INPUTS)

    before = set(threading.enumerate())
    points = 0
    for at in _interrupted_at_each_point(life):
        assert _wait_for_threads_to_end(before) == [], f"interrupted at point {at}"
        points += 1
    assert points > 50


def test_an_interrupted_session_is_over_or_goes_on_and_ends_when_it_is_forgotten() -> None:
    held: list[fs.Session] = []

    def life() -> None:
        held[:] = [fs.start(GRAPH, MODELS)]
        held[0].run(INPUTS)

    before = set(threading.enumerate())
    for at in _interrupted_at_each_point(life):
        assert {_run_again(live) for live in held} <= {"", OVER}, f"interrupted at point {at}"
        held.clear()
        assert _wait_for_threads_to_end(before) == [], f"interrupted at point {at}"
    held.clear()
    assert _wait_for_threads_to_end(before) == []
