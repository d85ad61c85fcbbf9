"""The seed's graph on threads against two programs written by hand, and against the arithmetic bound.

Policy on 2 replicas in batches of 4; reference, value and reward on 8 replicas in batches of 2; 16 samples, rows
of 1,024 floats. Without work (the models return what they are given) only the overhead of a step is left. With
slept costs a step cannot take less than its longest chain: two policy calls, a reference call, a reward call.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import flowsched as fs
from benchmarks.by_hand.executors import ExecutorProgram
from benchmarks.by_hand.queues import QueueProgram
from benchmarks.figures import Figure, Section, at_most
from benchmarks.timing import Timing, interleave, median_ratio, median_timing

Array = NDArray[Any]
Models = Mapping[str, Callable[..., Array]]
Run = Callable[[], Mapping[str, Array]]

SAMPLES, WIDTH = 16, 1_024
COSTS = {"policy": (0.1, 0.05), "reference": (0.02, 0.04), "value": (0.02, 0.04), "reward": (0.02, 0.04)}
"""Seconds a call and seconds a row."""

FLOWSCHED, EXECUTORS, QUEUES = (
    "flowsched",
    "one ThreadPoolExecutor(1) per replica",
    "one SimpleQueue per replica",
)


def seed_graph() -> fs.Graph:
    """Return the seed's graph."""
    return fs.Graph(
        "seed",
        sources=["prompts"],
        nodes=[
            fs.Node("policy", inputs=["prompts"], replicas=2, batch_size=4),
            fs.Node("reference", inputs=["policy"], replicas=8, batch_size=2),
            fs.Node("value", inputs=["policy"], replicas=8, batch_size=2),
            fs.Node("reward", inputs=["policy", "reference"], replicas=8, batch_size=2),
        ],
    )


def measure(runs: int) -> Section:
    """Measure 30 times ``runs`` rounds without work, and ``runs`` rounds with slept costs.

    Without work a round is 10 steps, shorter than what the system gives a process at a time, so that most
    rounds are not disturbed by others.
    """
    _refuse_differences(_counting_models())
    idle = _time_sides(dict.fromkeys(COSTS, _first), rounds=30 * runs, repeats=10)
    slept = _time_sides({name: partial(_sleep, name) for name in COSTS}, rounds=runs, repeats=1)
    bound = lower_bound()
    figures = [
        *(_say_step(f"no work: {name}", timings) for name, timings in idle.items()),
        at_most(
            f"no work: {FLOWSCHED} over {EXECUTORS}", median_ratio(idle[FLOWSCHED], idle[EXECUTORS]), 1, "x"
        ),
        at_most(f"no work: {FLOWSCHED} over {QUEUES}", median_ratio(idle[FLOWSCHED], idle[QUEUES]), 1.5, "x"),
        *(_say_step(f"slept: {name}", timings) for name, timings in slept.items()),
        _say_reached(bound, median_timing(slept[FLOWSCHED])),
    ]
    how = (
        f"The seed's graph, {SAMPLES} samples, rows of {WIDTH:,} floats, outputs read. Medians of rounds in "
        f"each of which every side runs: {30 * runs} of 10 steps without work, {runs} of one step with slept costs."
    )
    return Section("A step of the seed's graph on threads", how, figures)


def lower_bound() -> float:
    """Return the seconds that a step with slept costs takes at least: its longest chain of calls."""

    def call(name: str, rows: int) -> float:
        each, row = COSTS[name]
        return each + row * rows

    return 2 * call("policy", 4) + call("reference", 2) + call("reward", 2)


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


def _counting_models() -> Models:
    """Return models whose results tell which of them made what of which row."""
    return {
        "policy": lambda prompts: prompts + 1,
        "reference": lambda answers: answers * 2,
        "value": lambda answers: answers * 3,
        "reward": lambda answers, scores: answers + 10 * scores,
    }


def _first(batch: Array, *_: Array) -> Array:
    return batch


def _sleep(node: str, batch: Array, *_: Array) -> Array:
    each, row = COSTS[node]
    time.sleep(each + row * len(batch))
    return batch


def _say_step(what: str, timings: list[Timing]) -> Figure:
    step = median_timing(timings)
    return Figure(what, f"{step.wall * 1e3:.3g} ms a step, {step.cpu * 1e3:.2g} ms CPU")


def _say_reached(bound: float, step: Timing) -> Figure:
    reached = bound / step.wall
    what = f"slept: {FLOWSCHED} reaches of the bound of {bound * 1e3:.0f} ms"
    return Figure(what, f"{reached:.3f}", ">= 0.98", reached >= 0.98)
