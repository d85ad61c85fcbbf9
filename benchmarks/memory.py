"""What a step allocates beside what its workers do: 100 MiB of numpy through a chain of three nodes on threads.

Each worker allocates its result and nothing else, so that the three allocate 300 MiB: the least that a step can
need. Whatever comes on top is flowsched's: a call whose rows come from several producer calls needs them joined
in one array, and reading an output joins what its calls made. Slices are views and cost nothing.

All bytes are counted by numpy's own allocation handler (see :mod:`benchmarks.allocations`), and what is counted is
compared with the plan: workers must have been charged 300 MiB and flowsched the rows of all joined calls.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import flowsched as fs
from benchmarks.allocations import Allocations
from benchmarks.figures import Figure, Section

Array = NDArray[Any]

ROWS, WIDTH = 25_600, 1_024
MEBI = 1024**2
BATCH = ROWS * WIDTH * np.dtype(np.float32).itemsize

SETTINGS = {
    "alike: 2 x 256, 2 x 256, 2 x 256": [(2, 256), (2, 256), (2, 256)],
    "finer and finer: 2 x 256, 4 x 128, 8 x 64": [(2, 256), (4, 128), (8, 64)],
    "nothing divides, finer: 2 x 256, 3 x 60, 5 x 17": [(2, 256), (3, 60), (5, 17)],
    "nothing divides: 2 x 256, 3 x 100, 5 x 192": [(2, 256), (3, 100), (5, 192)],
    "coarser and coarser: 8 x 64, 4 x 128, 2 x 256": [(8, 64), (4, 128), (2, 256)],
}
"""Replicas x batch size of the three nodes."""


@dataclass(frozen=True)
class Allocated:
    """Bytes allocated in one step, in multiples of what its workers allocate.

    Attributes:
        run: by running the step.
        read: by running it and reading its output.
        peak: the most that was alive at once, over input and output (200 MiB).
        joined: the part of all rows that calls read from several producers at once.
    """

    run: float
    read: float
    peak: float
    joined: float


def measure(runs: int) -> Section:
    """Measure each setting once; the counts are exact and the same in every run, so that ``runs`` is not used."""
    del runs
    figures = [_say_setting(name, Allocated(**_in_own_process(name))) for name in SETTINGS]
    how = (
        f"A chain of three nodes, {ROWS:,} rows of {WIDTH:,} floats (100 MiB); settings are replicas x batch size. "
        "Bytes that numpy allocated in a step over the 300 MiB that the workers allocate, counted exactly."
    )
    return Section("Memory of a step on threads", how, figures)


def measure_here(setting: Sequence[tuple[int, int]]) -> Allocated:
    """Run one step and count.

    Raises:
        RuntimeError: the counts are not what the plan says, so that the counting is at fault.
    """
    allocations = Allocations()
    allocations.count_here()
    nodes = [
        fs.Node(name, inputs=[read], replicas=replicas, batch_size=batch_size)
        for name, read, (replicas, batch_size) in zip("abc", ["x", "a", "b"], setting, strict=True)
    ]
    plan = fs.compile(fs.Graph("chain", sources=["x"], nodes=nodes), samples=ROWS)
    with fs.start(plan.graph, dict.fromkeys("abc", partial(AddOne, allocations))) as session:
        batch = np.zeros((ROWS, WIDTH), np.float32)
        session.run({"x": batch})  # makes the plan, which is not a step's cost
        allocations.reset()
        outputs = session.run({"x": batch})
        ran, workers = allocations.made["others"], allocations.made["workers"]
        peak = allocations.peak
        read = outputs["c"]
        total = allocations.made["others"]
    if not (read == 3).all():
        raise RuntimeError("the chain returned something else than its input plus 3")
    joined = _joined_rows(plan)
    _refuse_miscount("workers", workers, 3 * BATCH)
    _refuse_miscount("the step", ran, joined * BATCH // ROWS)
    _refuse_miscount("reading", total - ran, BATCH if len(plan["c"]) > 1 else 0)
    return Allocated(
        run=(workers + ran) / workers,
        read=(workers + total) / workers,
        peak=peak / (2 * BATCH),
        joined=joined / (2 * ROWS),
    )


class AddOne:
    """A model that allocates its result and nothing else."""

    def __init__(self, allocations: Allocations) -> None:
        allocations.count_here()  # a replica is built in the thread that calls it
        self._charge: Callable[[str], Any] = allocations.charge

    def __call__(self, batch: Array) -> Array:
        with self._charge("workers"):
            return batch + np.float32(1)


def _joined_rows(plan: fs.Plan) -> int:
    """Return the rows of all calls that read several fragments."""
    table = plan.table
    fragments = np.diff(table.feed)
    return int((table.stop - table.start)[fragments > 1].sum())


def _refuse_miscount(who: str, counted: int, expected: int) -> None:
    if not expected <= counted <= expected + MEBI:
        raise RuntimeError(f"{who} allocated {counted:,} bytes by count, {expected:,} by the plan")


def _say_setting(name: str, found: Allocated) -> Figure:
    measured = f"{found.run:.2f} x; with the output read {found.read:.2f} x"
    alive = (
        f"{found.joined:.0%} of the rows read between nodes joined, peak {found.peak:.2f} x input and output"
    )
    return Figure(f"{name} ({alive})", measured, "run < 1.3 x", found.run < 1.3)


def _in_own_process(name: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.memory", name]
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE)
    result: dict[str, float] = json.loads(done.stdout)
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="Count the bytes of one setting in this process; prints JSON."
    )
    parser.add_argument("setting", choices=SETTINGS)
    print(json.dumps(vars(measure_here(SETTINGS[parser.parse_args().setting]))))
