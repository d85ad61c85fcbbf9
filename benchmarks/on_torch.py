"""A step on torch against the same messages by hand with gloo's isend and irecv, and against the arithmetic bound.

Both sides are 27 processes: one a replica and one that drives. Each side's driver is a process of its own, since a
process group belongs to a process; the sides run in turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from benchmarks.apart import Apart, Bring, Step
from benchmarks.figures import Figure, Section, at_most, say_reached, say_step
from benchmarks.timing import Timing, interleave_timers, median_cpu_ratio, median_ratio, median_timing
from benchmarks.workload import SAMPLES, WIDTH, idle_models, lower_bound, seed_graph, slept_models

WIDE = 2_097_152
"""Floats in a row of 8 MiB, so that a fragment of two rows has 16 MiB."""
FLOWSCHED, BY_HAND = "flowsched", "isend and irecv by hand"
STEP = "step"


def measure(runs: int) -> Section:
    """Measure ``runs`` rounds with each kind of rows, more where nothing is slept and rows are small."""
    small = _time_sides(WIDTH, slept=False, rounds=5 * runs, repeats=20)
    wide = _time_sides(WIDE, slept=False, rounds=runs, repeats=2)
    slept = _time_sides(WIDTH, slept=True, rounds=runs, repeats=1)
    figures = [
        *_compare("no work, fragments of 8 and 16 KiB", small),
        *_compare("no work, fragments of 16 and 32 MiB", wide),
        *(say_step(f"slept: {name}", timings) for name, timings in slept.items()),
        say_reached(f"slept: {FLOWSCHED}", lower_bound(), median_timing(slept[FLOWSCHED]).wall, 0.98),
    ]
    how = (
        f"The seed's graph, {SAMPLES} samples, 26 replicas and a driver in 27 processes on each side; CPU is that "
        "of all 27. "
        f"Medians of rounds in each of which both sides run: {5 * runs} of 20 steps with rows of {WIDTH:,} floats, "
        f"{runs} of 2 steps with rows of {WIDE:,} floats, {runs} of one step with slept costs."
    )
    return Section("A step of the seed's graph on torch.distributed", how, figures)


@contextmanager
def bring_flowsched(width: int, slept: bool) -> Iterator[Mapping[str, Step]]:
    """Start a session on torch and yield what runs a step with its outputs read."""
    import torch

    import flowsched as fs

    torch.set_num_threads(1)
    prompts = torch.zeros(SAMPLES, width)
    with fs.start(seed_graph(), _models(slept), backend="torch") as session:
        yield {STEP: lambda: dict(session.run({"prompts": prompts}))}


@contextmanager
def bring_gloo(width: int, slept: bool) -> Iterator[Mapping[str, Step]]:
    """Start the program by hand and yield what runs a step."""
    import torch

    from benchmarks.by_hand.gloo import GlooProgram

    prompts = torch.zeros(SAMPLES, width)
    with GlooProgram(_models(slept), width) as program:
        yield {STEP: lambda: program.run(prompts)}


def _models(slept: bool) -> Any:
    return slept_models() if slept else idle_models()


def _time_sides(width: int, slept: bool, rounds: int, repeats: int) -> dict[str, list[Timing]]:
    sides: dict[str, Bring] = {
        FLOWSCHED: partial(bring_flowsched, width, slept),
        BY_HAND: partial(bring_gloo, width, slept),
    }
    with ExitStack() as stack:
        timers = {
            name: stack.enter_context(Apart(bring, count_all=True)).timer(STEP)
            for name, bring in sides.items()
        }
        for warm_up in timers.values():
            warm_up(2)
        return interleave_timers(timers, rounds, repeats)


def _compare(what: str, timings: dict[str, list[Timing]]) -> list[Figure]:
    ours, by_hand = timings[FLOWSCHED], timings[BY_HAND]
    return [
        *(say_step(f"{what}: {name}", own) for name, own in timings.items()),
        at_most(f"{what}: {FLOWSCHED} over {BY_HAND}", median_ratio(ours, by_hand), 1.2, "x"),
        Figure(f"{what}: the same, CPU", f"{median_cpu_ratio(ours, by_hand):.2f} x"),
    ]
