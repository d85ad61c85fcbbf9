"""What others make of the same jobs: time a step, calls, idle replicas, samples lost or padded.

Each peer is compared with flowsched on Ray, both up at the same time in processes of their own and run in turn. At
the end flowsched's other backends run the same jobs. A peer that is not installed, or cannot be imported here, is
told and passed over.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from benchmarks.apart import Apart
from benchmarks.figures import Figure, Section, say_number
from benchmarks.peers.dask_distributed import bring_dask
from benchmarks.peers.flowsched_sides import bring_flowsched
from benchmarks.peers.jobs import JOBS
from benchmarks.peers.ray_data import bring_ray_data
from benchmarks.peers.side import Bring, bring_steps
from benchmarks.peers.told import Told, read_told
from benchmarks.peers.verl_group import bring_verl
from benchmarks.timing import Timing, interleave_timers, median_ratio

OURS = "flowsched on ray"
SIDES: dict[str, Bring] = {
    OURS: partial(bring_flowsched, "ray", {"num_cpus": 0}),
    "flowsched on torch": partial(bring_flowsched, "torch", {}),
    "flowsched on threads": partial(bring_flowsched, "threads", {}),
    "Ray Data": bring_ray_data,
    "dask.distributed": bring_dask,
    "verl": bring_verl,
}
PACKAGES = {"Ray Data": "pyarrow", "dask.distributed": "distributed", "verl": "verl"}
"""What a peer needs beside flowsched's own extras."""
MOST_ROUNDS = {"Ray Data": 2}
"""Of peers that take long: Ray Data starts its actors in every step."""
ONLY = {"whole": ("verl",)}
"""Jobs that not all peers are given."""
COMPARED = [*([OURS, peer] for peer in PACKAGES), ["flowsched on torch", "flowsched on threads"]]


@dataclass(frozen=True)
class Found:
    """What was measured of a side.

    Attributes:
        idle: timings of steps without work.
        slept: timings of steps with slept costs.
        told: one step as its workers saw it.
    """

    idle: list[Timing]
    slept: list[Timing]
    told: Told


def measure(runs: int) -> Section:
    """Measure ``runs`` rounds without work and half as many with slept costs, of each job and peer."""
    asked = [(job, sides) for job in JOBS for sides in COMPARED if sides[-1] in ONLY.get(job, sides)]
    figures = [figure for job, sides in asked for figure in _compare(job, sides, runs)]
    how = (
        f"Medians of {runs} rounds without work and {_half(runs)} with slept costs (2 and 1 beside Ray Data, which "
        "starts its actors anew in every step), in each of which the sides of a comparison run one step in turn. "
        "*Calls* are the span from the first call's begin to the last one's end in a step with slept costs, "
        "without what a side does before and after. verl serves three nodes of the seed's graph by the same 8 "
        "workers, so that 10 processes stand for 26 replicas; all other sides have one a replica."
    )
    return Section("What others make of the same jobs", how, figures)


def _half(rounds: int) -> int:
    return (rounds + 1) // 2


def _compare(job: str, names: list[str], runs: int) -> Iterator[Figure]:
    missing = [PACKAGES[name] for name in names if name in PACKAGES and find_spec(PACKAGES[name]) is None]
    if missing:
        yield Figure(f"{JOBS[job].title}: {names[-1]}", f"not measured: {missing[0]} is not installed")
        return
    try:
        found = _measure_sides(job, names, runs)
    except RuntimeError as error:
        yield Figure(f"{JOBS[job].title}: {names[-1]}", f"not measured: {error}")
        return
    yield from _say(job, found)


def _measure_sides(job: str, names: list[str], runs: int) -> dict[str, Found]:
    with ExitStack() as stack:
        folders, sides = {}, {}
        for name in names:
            folders[name] = stack.enter_context(tempfile.TemporaryDirectory())
            sides[name] = stack.enter_context(Apart(partial(bring_steps, SIDES[name], job, folders[name])))
        rounds = min(MOST_ROUNDS.get(name, runs) for name in names)
        idle = interleave_timers({name: side.timer("idle") for name, side in sides.items()}, rounds, 1)
        slept = interleave_timers(
            {name: side.timer("slept") for name, side in sides.items()}, _half(rounds), 1
        )
        for side in sides.values():
            side.timer("told")(1)
        told = {name: read_told(JOBS[job], Path(folder)) for name, folder in folders.items()}
    return {name: Found(idle[name], slept[name], told[name]) for name in names}


def _say(job: str, found: Mapping[str, Found]) -> Iterator[Figure]:
    title = JOBS[job].title
    for name, side in found.items():
        idle, slept = (_milliseconds(timings) for timings in (side.idle, side.slept))
        span = f"{side.told.seconds * 1e3:,.0f} ms"
        yield Figure(f"{title}: {name}", f"no work {idle}, slept {slept}, calls {span}; {side.told}")
    for name, peer in found.items() if OURS in found else ():
        if name != OURS:
            yield _say_ahead(f"{title}: {OURS} over {name}, no work", found[OURS].idle, peer.idle)
            yield _say_ahead(f"{title}: {OURS} over {name}, slept", found[OURS].slept, peer.slept)


def _say_ahead(what: str, own: list[Timing], other: list[Timing]) -> Figure:
    ratio = median_ratio(own, other)
    return Figure(what, f"{say_number(ratio, 2)} x", "< 1 x", ratio < 1)


def _milliseconds(timings: list[Timing]) -> str:
    return f"{say_number(median(timing.wall for timing in timings) * 1e3)} ms"
