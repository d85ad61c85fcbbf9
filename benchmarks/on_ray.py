"""A step on Ray against two programs by hand: actors chained by ObjectRefs, and the same through a compiled graph.

All sides of a comparison have their own actors in one local Ray instance and one driver, and run in turn. Their
models sleep if they are told to by their input, so that the same actors are measured with and without work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

import flowsched as fs
from benchmarks.by_hand.ray_actors import RayActorProgram
from benchmarks.by_hand.ray_compiled import RayCompiledProgram
from benchmarks.figures import Figure, Section, at_least, at_most, say_reached, say_step
from benchmarks.local_ray import local_ray
from benchmarks.timing import Timing, interleave, median_cpu_ratio, median_ratio, median_timing
from benchmarks.workload import SAMPLES, WIDTH, lower_bound, seed_graph, told_models
from flowsched.errors import BackendError

Timings = dict[str, list[Timing]]
Run = Callable[[Any], Mapping[str, Any]]
OURS, BY_HAND = "flowsched", "actors by hand"
OURS_COMPILED, COMPILED_BY_HAND = "flowsched, compiled", "compiled graph by hand"


def measure(runs: int) -> Section:
    """Measure 3 times ``runs`` rounds without work, and ``runs`` rounds with slept costs."""
    with local_ray(), _actor_sides() as sides:
        idle, slept = _time_sides(sides, runs)
    figures = _say_actors(idle, slept)
    try:
        with local_ray(), _compiled_sides() as sides:
            figures += _say_compiled(*_time_sides(sides, runs))
    except BackendError as error:
        figures.append(Figure(OURS_COMPILED, f"not measured: {error}"))
    how = (
        f"The seed's graph, {SAMPLES} samples, rows of {WIDTH:,} floats in numpy, 26 actors on each side, outputs "
        f"read. Medians of rounds in each of which every side runs: {3 * runs} of 5 steps without work, {runs} of "
        "one step with slept costs. The first two sides were measured together, and then the last three."
    )
    return Section("A step of the seed's graph on Ray", how, figures)


@contextmanager
def _actor_sides() -> Iterator[dict[str, Run]]:
    with ExitStack() as stack:
        session = stack.enter_context(fs.start(seed_graph(), told_models(), backend="ray", num_cpus=0))
        by_hand = stack.enter_context(RayActorProgram(told_models()))
        yield {OURS: lambda prompts: dict(session.run({"prompts": prompts})), BY_HAND: by_hand.run}


@contextmanager
def _compiled_sides() -> Iterator[dict[str, Run]]:
    with ExitStack() as stack:
        session = stack.enter_context(
            fs.start(seed_graph(), told_models(), backend="ray", num_cpus=0, compiled=True)
        )
        compiled = stack.enter_context(RayCompiledProgram(told_models()))
        by_hand = stack.enter_context(RayActorProgram(told_models()))
        yield {
            OURS_COMPILED: lambda prompts: dict(session.run({"prompts": prompts})),
            COMPILED_BY_HAND: compiled.run,
            BY_HAND: by_hand.run,
        }


def _time_sides(sides: Mapping[str, Run], runs: int) -> tuple[Timings, Timings]:
    """Return timings without work and with slept costs."""
    idle = np.zeros((SAMPLES, WIDTH), np.float32)
    idle[:, 1] = range(SAMPLES)
    for name, run in sides.items():
        for _ in range(5):
            _refuse_other_rows(name, run(idle), idle)
    slept = idle + 1
    found = interleave({name: _bind(run, idle) for name, run in sides.items()}, rounds=3 * runs, repeats=5)
    return found, interleave({name: _bind(run, slept) for name, run in sides.items()}, rounds=runs, repeats=1)


def _refuse_other_rows(name: str, made: Mapping[str, Any], prompts: Any) -> None:
    """Raise unless a side returns the rows that it was given.

    Raises:
        RuntimeError: it does not.
    """
    for output in ("value", "reward"):
        if not np.array_equal(made[output], prompts):
            raise RuntimeError(f"{name} returns other rows of {output} than it was given")


def _bind(run: Run, prompts: Any) -> Callable[[], object]:
    return lambda: run(prompts)


def _say_actors(idle: Timings, slept: Timings) -> list[Figure]:
    beside = median_ratio(slept[BY_HAND], slept[OURS])
    return [
        *(say_step(f"no work: {name}", own) for name, own in idle.items()),
        at_most(f"no work: {OURS} over {BY_HAND}, wall", median_ratio(idle[OURS], idle[BY_HAND]), 1.1, "x"),
        at_most(
            f"no work: {OURS} over {BY_HAND}, CPU of the driver",
            median_cpu_ratio(idle[OURS], idle[BY_HAND]),
            1.1,
            "x",
        ),
        *(say_step(f"slept: {name}", own) for name, own in slept.items()),
        at_least(f"slept: {OURS} reaches of {BY_HAND}", beside, 0.98),
    ]


def _say_compiled(idle: Timings, slept: Timings) -> list[Figure]:
    by_hand = median_ratio(idle[COMPILED_BY_HAND], idle[BY_HAND])
    bound, wall = lower_bound(), median_timing(slept[OURS_COMPILED]).wall
    return [
        *(say_step(f"no work, beside compiled graphs: {name}", own) for name, own in idle.items()),
        at_most(
            f"no work: {OURS_COMPILED} over {BY_HAND}",
            median_ratio(idle[OURS_COMPILED], idle[BY_HAND]),
            0.6,
            "x",
        ),
        Figure(f"no work: {COMPILED_BY_HAND} over {BY_HAND}", f"{by_hand:.2f} x"),
        *(say_step(f"slept, beside compiled graphs: {name}", own) for name, own in slept.items()),
        say_reached(f"slept: {OURS_COMPILED}", bound, wall, 0.95),
    ]
