"""Dealing ten million samples to four ranks, and gathering 64 MiB of rows, beside what torch and accelerate do.

Each sampler is made and iterated for one rank's epoch in a process of its own, so that its memory is its own. What
is compared yields the same number of lists of the same length: this number of samples divides, where torch and
accelerate repeat some of others.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from torch.utils.data import BatchSampler, DistributedSampler, RandomSampler, Sampler, SequentialSampler

from benchmarks.figures import Figure, Section, at_most, say_number
from benchmarks.gathering import measure_gathering
from benchmarks.machine import peak_memory
from flowsched.data import ShardedBatchSampler

SAMPLES, RANKS, BATCH = 10_000_000, 4, 16
FLOWSCHED, TORCH, ACCELERATE = (
    "flowsched",
    "torch (DistributedSampler)",
    "accelerate (BatchSamplerShard)",
)
ORDERS = ("plain", "shuffled")
LITTLE = 1.0
"""MiB below which nothing is made of memory: of two that take next to none, neither takes twice as much."""

Measured = Mapping[str, float]


def measure(runs: int) -> Section:
    """Measure each sampler in ``runs`` processes, and 3 times ``runs`` rounds of gathering."""
    found: dict[tuple[str, str], list[Measured]] = {
        (side, order): [] for side in _sides() for order in ORDERS
    }
    for _ in range(runs):
        for (side, order), measured in found.items():
            measured.append(_in_own_process(side, order))
    figures = [figure for order in ORDERS for figure in _compare(order, found)]
    how = (
        f"Samplers: made and iterated for one rank's epoch of {SAMPLES:,} samples, {RANKS} ranks, batches of "
        f"{BATCH}, each in a process of its own; medians of {runs}, memory over that of the imports. Gathering: "
        f"{RANKS} gloo ranks on this machine, 16,384 rows of 1,024 floats in all, medians of {3 * runs} rounds in "
        "which all sides run in turn; CPU is that of all ranks."
    )
    return Section("Sharding", how, [*figures, *measure_gathering(3 * runs)])


def _compare(order: str, found: Mapping[tuple[str, str], Sequence[Measured]]) -> list[Figure]:
    ours = found[FLOWSCHED, order]
    figures = [_say(side, order, found[side, order]) for side in _sides()]
    for side in _sides()[1:]:
        theirs = found[side, order]
        what = f"{order}: {FLOWSCHED} over {side}"
        ratio = median(own["cpu"] / other["cpu"] for own, other in zip(ours, theirs, strict=True))
        peak, limit = (median(one["peak"] for one in taken) for taken in (ours, theirs))
        figures += [
            at_most(f"{what}, CPU", ratio, 1, "x"),
            Figure(
                f"{what}, memory",
                f"{peak / limit:.2f} x" if limit >= LITTLE else f"{peak:.1f} and {limit:.1f} MiB",
                f"<= 0.5 x, or {LITTLE:g} MiB",
                peak <= max(LITTLE, limit / 2),
            ),
        ]
    return figures


def _say(side: str, order: str, measured: Sequence[Measured]) -> Figure:
    wall, cpu, peak = (median(one[key] for one in measured) for key in ("wall", "cpu", "peak"))
    return Figure(f"{order}: {side}", f"{say_number(wall, 2)} s, {say_number(cpu, 2)} s CPU, {peak:.1f} MiB")


def _sides() -> list[str]:
    return [FLOWSCHED, TORCH, *([ACCELERATE] if find_spec("accelerate") else [])]


class Numbers(Sequence[int]):
    """A data set of which a sampler needs the length alone."""

    def __init__(self, samples: int) -> None:
        self._samples = samples

    def __len__(self) -> int:
        return self._samples

    def __getitem__(self, at: Any) -> Any:
        return at


def make_sampler(side: str, samples: int, shuffle: bool, rank: int = 0) -> Iterable[list[int]]:
    """Return what yields the batches of one rank, as its user would make it."""
    data: Any = Numbers(samples)
    if side == FLOWSCHED:
        return ShardedBatchSampler(data, BATCH, shuffle=shuffle, rank=rank, ranks=RANKS)
    if side == TORCH:
        return BatchSampler(DistributedSampler(data, RANKS, rank, shuffle=shuffle), BATCH, False)
    from accelerate.data_loader import BatchSamplerShard

    order: Sampler[int] = RandomSampler(data) if shuffle else SequentialSampler(data)
    sharded: Iterable[list[int]] = BatchSamplerShard(BatchSampler(order, BATCH, False), RANKS, rank)
    return sharded


def measure_here(side: str, shuffle: bool, samples: int = SAMPLES) -> Measured:
    """Make and iterate one sampler in this process, which must be a fresh one for its memory to mean anything.

    Raises:
        RuntimeError: it yields another number of samples than a rank's share.
    """
    sum(map(len, make_sampler(side, 1000, shuffle)))  # what is loaded at first use is not a sampler's memory
    before, wall, cpu = peak_memory(), time.perf_counter(), time.process_time()
    count = sum(map(len, make_sampler(side, samples, shuffle)))
    taken = {
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "peak": peak_memory() - before,
    }
    if count != samples // RANKS:
        raise RuntimeError(f"{side} yields {count:,} samples, and a rank's share are {samples // RANKS:,}")
    return taken


def _in_own_process(side: str, order: str) -> Measured:
    command = [sys.executable, "-m", "benchmarks.sharding", side, order]
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE)
    result: Measured = json.loads(done.stdout)
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure one sampler in this process; prints JSON.")
    parser.add_argument("side", choices=[FLOWSCHED, TORCH, ACCELERATE])
    parser.add_argument("order", choices=ORDERS)
    given = parser.parse_args()
    print(json.dumps(measure_here(given.side, given.order == "shuffled")))
