"""The seed's graph on threads against two programs written by hand, and against the arithmetic bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

import flowsched as fs
from benchmarks.by_hand.executors import ExecutorProgram
from benchmarks.by_hand.queues import QueueProgram
from benchmarks.figures import Section, at_most, say_reached, say_step
from benchmarks.timing import Timing, interleave, median_ratio, median_timing
from benchmarks.workload import (
    SAMPLES,
    WIDTH,
    Models,
    counting_models,
    idle_models,
    lower_bound,
    seed_graph,
    slept_models,
)

Array = NDArray[Any]
Run = Callable[[], Mapping[str, Array]]

FLOWSCHED, EXECUTORS, QUEUES = (
    "flowsched",
    "one ThreadPoolExecutor(1) per replica",
    "one SimpleQueue per replica",
)


def measure(runs: int) -> Section:
    """Measure 30 times ``runs`` rounds without work, and ``runs`` rounds with slept costs.

    Without work a round is 10 steps, shorter than what the system gives a process at a time, so that most
    rounds are not disturbed by others.
    """
    _refuse_differences(counting_models())
    idle = _time_sides(idle_models(), rounds=30 * runs, repeats=10)
    slept = _time_sides(slept_models(), rounds=runs, repeats=1)
    bound = lower_bound()
    figures = [
        *(say_step(f"no work: {name}", timings) for name, timings in idle.items()),
        at_most(
            f"no work: {FLOWSCHED} over {EXECUTORS}", median_ratio(idle[FLOWSCHED], idle[EXECUTORS]), 1, "x"
        ),
        at_most(f"no work: {FLOWSCHED} over {QUEUES}", median_ratio(idle[FLOWSCHED], idle[QUEUES]), 1.5, "x"),
        *(say_step(f"slept: {name}", timings) for name, timings in slept.items()),
        say_reached(f"slept: {FLOWSCHED}", bound, median_timing(slept[FLOWSCHED]).wall, 0.98),
    ]
    how = (
        f"The seed's graph, {SAMPLES} samples, rows of {WIDTH:,} floats, outputs read. Medians of rounds in "
        f"each of which every side runs: {30 * runs} of 10 steps without work, {runs} of one step with slept costs."
    )
    return Section("A step of the seed's graph on threads", how, figures)


@contextmanager
def all_sides(models: Models, prompts: Array) -> Iterator[dict[str, Run]]:
    """Yield one function a side that runs a step; the replicas of all sides stay up."""
    with ExitStack() as stack:
        session = stack.enter_context(fs.start(seed_graph(), models))
        executors = stack.enter_context(ExecutorProgram(models))
        queues = stack.enter_context(QueueProgram(models))
        yield {
            FLOWSCHED: lambda: dict(session.run({"prompts": prompts})),
            EXECUTORS: lambda: executors.run(prompts),
            QUEUES: lambda: queues.run(prompts),
        }


def _time_sides(models: Models, rounds: int, repeats: int) -> dict[str, list[Timing]]:
    with all_sides(models, np.ones((SAMPLES, WIDTH), np.float32)) as sides:
        for run in sides.values():
            run()
        return interleave(sides, rounds, repeats)


def _refuse_differences(models: Models) -> None:
    """Raise unless all sides return the same arrays.

    Raises:
        RuntimeError: a side returns something else than flowsched.
    """
    prompts = np.arange(SAMPLES * WIDTH, dtype=np.float32).reshape(SAMPLES, WIDTH)
    with all_sides(models, prompts) as sides:
        results = {name: run() for name, run in sides.items()}
    for name, result in results.items():
        for output in ("value", "reward"):
            if not np.array_equal(result[output], results[FLOWSCHED][output]):
                raise RuntimeError(f"{name} returns another {output} than {FLOWSCHED}")
