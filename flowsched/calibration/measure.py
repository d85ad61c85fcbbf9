"""How the cost of a call, a fragment and a megabyte are told apart: steps that differ in one of them."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from statistics import median
from typing import Any

import numpy as np

from flowsched.backend import Backend
from flowsched.calibration.workers import Rows, count, pass_on
from flowsched.costs import BackendCosts
from flowsched.graph import Graph, Node
from flowsched.planner import compile_plan
from flowsched.session import Session, start

SAMPLES = 64
_BYTES_A_ROW = 500_000
_LARGE_ROWS = 32
_PACKAGES = ("numpy", "ray", "torch")


@dataclass(frozen=True)
class Timing:
    """How long steps of one shape took.

    Attributes:
        name: what the shape is.
        calls, fragments, megabytes: what one step consists of.
        seconds: of each repeat.
    """

    name: str
    calls: int
    fragments: int
    megabytes: float
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median seconds of a step."""
        return median(self.seconds)


def calibrate(
    make: Callable[[], Backend],
    options: Mapping[str, Any],
    *,
    repeats: int = 9,
    report: Callable[[str], None] | None = None,
) -> tuple[BackendCosts, tuple[Timing, ...]]:
    """Measure what routing costs on a backend of this machine.

    Two nodes with a replica each run one after the other, and their workers do nothing. Steps of four shapes are
    timed in turn: they differ only in calls (one for each row or one for all), in fragments (cut by the producer
    or by the consumer) or in bytes; the differences of their medians are the costs. What the machine's noise
    makes negative is 0.

    Args:
        make: makes the backend anew for each session.
        options: the options that ``make`` gives it, for the record.
        repeats: steps of each shape that count; one more goes before them.
        report: is told what is being measured.

    Raises:
        BackendError: the backend cannot run on this machine.
    """
    tell = report or (lambda _: None)
    shapes = {"few": (None, None), "cut": (1, None), "divide": (None, 1), "many": (1, 1)}
    with ExitStack() as stack:
        sessions = {}
        for name, (first, second) in shapes.items():
            tell(f"starting replicas: {name}")
            graph = _chain(first, second)
            models = {"first": pass_on, "second": pass_on}
            sessions[name] = (stack.enter_context(_start(graph, models, make())), np.arange(SAMPLES))
        tell(f"timing steps of {SAMPLES} rows")
        timings = _time(sessions, repeats)
    few, cut, divide, many = (timings[name] for name in shapes)
    tell("timing bytes")
    small, large = _time_bytes(make, repeats)
    costs = BackendCosts(
        backend=make().name,
        step=few.median,
        call=_per(many, cut, many.calls - cut.calls),
        fragment=_per(cut, divide, cut.fragments - divide.fragments),
        megabyte=_per(large, small, large.megabytes - small.megabytes),
        options=dict(options),
        machine=f"{platform.node()}, {os.cpu_count()} cores",
        versions=_versions(),
        measured=date.today().isoformat(),
    )
    return costs, (few, cut, divide, many, small, large)


def _chain(first: int | None, second: int | None) -> Graph:
    nodes = [
        Node("first", ["rows"], batch_size=first),
        Node("second", ["first"], batch_size=second, after=["first"]),
    ]
    return Graph("calibration", ["rows"], nodes)


def _start(graph: Graph, models: Mapping[str, Any], backend: Backend) -> Session:
    return start(graph, models, backend=backend, max_in_flight=2 * SAMPLES)


def _time(
    sessions: Mapping[str, tuple[Session, Any]], repeats: int, megabytes: Mapping[str, float] | None = None
) -> dict[str, Timing]:
    """Run one step of each session in turn, again and again, so that noise meets all of them alike."""
    seconds: dict[str, list[float]] = {name: [] for name in sessions}
    for _ in range(repeats + 1):
        for name, (session, rows) in sessions.items():
            began = time.perf_counter()
            session.run({"rows": rows})["second"]
            seconds[name].append(time.perf_counter() - began)
    timings = {}
    for name, (session, rows) in sessions.items():
        table = compile_plan(session.graph, len(rows)).table
        timings[name] = Timing(
            name, table.calls, table.fragments, (megabytes or {}).get(name, 0.0), tuple(seconds[name][1:])
        )
    return timings


def _time_bytes(make: Callable[[], Backend], repeats: int) -> Sequence[Timing]:
    graph = _chain(None, None)
    widths = {"small": 1, "large": _BYTES_A_ROW}
    rows = np.arange(_LARGE_ROWS)
    megabytes = {name: width * _LARGE_ROWS / 1e6 for name, width in widths.items()}
    with ExitStack() as stack:
        sessions = {
            name: (
                stack.enter_context(
                    _start(graph, {"first": partial(Rows, _LARGE_ROWS, width), "second": count}, make())
                ),
                rows,
            )
            for name, width in widths.items()
        }
        timings = _time(sessions, repeats, megabytes)
    return [timings[name] for name in widths]


def _per(more: Timing, less: Timing, units: float) -> float:
    return max((more.median - less.median) / units, 0.0)


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
