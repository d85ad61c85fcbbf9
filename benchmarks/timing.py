"""Timing of several programs in turn, so that a noisy machine disturbs all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median


@dataclass(frozen=True)
class Timing:
    """Seconds a run, over some runs in a row.

    Attributes:
        wall: seconds by the clock.
        cpu: seconds of processor time, of all threads.
    """

    wall: float
    cpu: float


def interleave(
    sides: Mapping[str, Callable[[], object]], rounds: int, repeats: int
) -> dict[str, list[Timing]]:
    """Time every side once in each round: A, B, C; B, C, A; C, A, B; ...

    Args:
        sides: what is run, by name.
        rounds: how often each side is timed.
        repeats: runs in a row each time.

    Returns:
        For each side one timing a round, so that timings of the same place were taken together.
    """
    return interleave_timers({name: partial(time_runs, run) for name, run in sides.items()}, rounds, repeats)


def interleave_timers(
    timers: Mapping[str, Callable[[int], Timing]], rounds: int, repeats: int
) -> dict[str, list[Timing]]:
    """Do the same for sides that time themselves, e.g. in another process: they are given ``repeats``."""
    names = list(timers)
    timings: dict[str, list[Timing]] = {name: [] for name in names}
    for at in range(rounds):
        first = at % len(names)
        for name in (*names[first:], *names[:first]):
            timings[name].append(timers[name](repeats))
    return timings


def time_runs(run: Callable[[], object], repeats: int) -> Timing:
    """Time some runs in a row."""
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(repeats):
        run()
    return Timing((time.perf_counter() - wall) / repeats, (time.process_time() - cpu) / repeats)


def median_timing(timings: Sequence[Timing]) -> Timing:
    """Return the medians of both times."""
    return Timing(median(timing.wall for timing in timings), median(timing.cpu for timing in timings))


def median_ratio(timings: Sequence[Timing], others: Sequence[Timing]) -> float:
    """Return the median, over rounds, of how many times the wall time of the other side was taken."""
    return median(own.wall / other.wall for own, other in zip(timings, others, strict=True))


def median_cpu_ratio(timings: Sequence[Timing], others: Sequence[Timing]) -> float:
    """Return the same of the processor time."""
    return median(own.cpu / other.cpu for own, other in zip(timings, others, strict=True))
