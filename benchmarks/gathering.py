"""Gathering the rows of four gloo ranks: flowsched beside the collectives that users write.

All ranks are forked, run the same sides in the same turn, and meet before and after each.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from benchmarks.figures import Figure, at_most, say_number
from benchmarks.timing import Timing, interleave, median_cpu_ratio, median_ratio, median_timing
from flowsched.data import ShardedBatchSampler, gather

RANKS, ROWS, WIDTH = 4, 16_384, 1_024
LISTED, JOINED, SINGLE, ACCELERATE = (
    "dist.all_gather",
    "dist.all_gather and torch.cat",
    "dist.all_gather_into_tensor",
    "accelerate.utils.gather",
)
OURS = ("gather, plain", "gather, shuffled", f"gather, shuffled, {ROWS - 3:,} rows", "gather, no loader")
SECONDS = 600


def measure_gathering(rounds: int) -> list[Figure]:
    """Measure so many rounds in ranks of their own."""
    timings = run_on_ranks(rounds, ROWS)
    sides = [side for side in (*OURS, LISTED, JOINED, SINGLE, ACCELERATE) if side in timings]
    figures = [_say(side, timings[side]) for side in sides]
    return [
        *figures,
        *(
            at_most(f"{side}, over {LISTED}", median_ratio(timings[side], timings[LISTED]), 1.2, "x")
            for side in OURS
        ),
        *(
            Figure(f"{side}, over {LISTED}, CPU", f"{median_cpu_ratio(timings[side], timings[LISTED]):.2f} x")
            for side in OURS
        ),
        *(
            Figure(f"{OURS[1]}, over {side}", f"{median_ratio(timings[OURS[1]], timings[side]):.2f} x")
            for side in sides
            if side not in (*OURS, LISTED)
        ),
    ]


def run_on_ranks(rounds: int, rows: int) -> dict[str, list[Timing]]:
    """Return for each side what each round took: rank 0's time, and the processor time of all ranks.

    Raises:
        TimeoutError: they have not ended within ten minutes.
        RuntimeError: a rank has died; what it said stands above.
    """
    with tempfile.TemporaryDirectory() as folder:
        context = mp.get_context("spawn")  # a fork of a process that has used torch may wait for ever
        port = _free_port()
        processes = [
            context.Process(target=_run, args=(rank, port, rounds, rows, Path(folder)), daemon=True)
            for rank in range(RANKS)
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join(SECONDS)
        alive = [process for process in processes if process.is_alive()]
        for process in alive:
            process.kill()
        if alive:
            raise TimeoutError(f"ranks have not ended within {SECONDS} s")
        if any(process.exitcode for process in processes):
            raise RuntimeError(f"ranks ended with {[process.exitcode for process in processes]}")
        everyone = [json.loads((Path(folder) / str(rank)).read_text()) for rank in range(RANKS)]
    return {
        side: [
            Timing(own[0][0], sum(cpu for _, cpu in own))
            for own in zip(*(of_rank[side] for of_rank in everyone), strict=True)
        ]
        for side in everyone[0]
    }


def make_sides(rank: int, rows: int) -> dict[str, Callable[[], object]]:
    """Return what a rank runs, by name; each returns the rows of all ranks."""
    samplers = {
        side: ShardedBatchSampler(samples, 16, shuffle=shuffle, rank=rank, ranks=RANKS)
        for side, samples, shuffle in zip(OURS[:3], (rows, rows, rows - 3), (False, True, True), strict=True)
    }
    mine = torch.randn(rows // RANKS, WIDTH)
    own = {side: mine[: len(sampler.deal.ids(rank))] for side, sampler in samplers.items()}

    def listed() -> list[torch.Tensor]:
        everyone = [torch.empty_like(mine) for _ in range(RANKS)]
        dist.all_gather(everyone, mine)
        return everyone

    def single() -> torch.Tensor:
        everyone = torch.empty(rows, WIDTH)
        into = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor  # its newer name
        into(everyone, mine)
        return everyone

    sides: dict[str, Callable[[], object]] = {
        **{side: _gather_by(own[side], sampler) for side, sampler in samplers.items()},
        OURS[3]: lambda: gather(mine),
        LISTED: listed,
        JOINED: lambda: torch.cat(listed()),
        SINGLE: single,
    }
    if find_spec("accelerate"):
        from accelerate import PartialState
        from accelerate.utils import gather as accelerate_gather

        PartialState(cpu=True)
        sides[ACCELERATE] = lambda: accelerate_gather(mine)
    return sides


def _gather_by(rows: torch.Tensor, sampler: ShardedBatchSampler) -> Callable[[], object]:
    return lambda: gather(rows, sampler)


def _run(rank: int, port: int, rounds: int, rows: int, folder: Path) -> None:
    torch.set_num_threads(1)
    os.environ.update(
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE=str(RANKS),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
    )
    dist.init_process_group("gloo")
    sides = {side: _meeting(run) for side, run in make_sides(rank, rows).items()}
    for run in sides.values():
        run()
    timings = interleave(sides, rounds, repeats=1)
    found: Mapping[str, Sequence[tuple[float, float]]] = {
        side: [(timing.wall, timing.cpu) for timing in own] for side, own in timings.items()
    }
    (folder / str(rank)).write_text(json.dumps(found))
    dist.destroy_process_group()


def _meeting(run: Callable[[], object]) -> Callable[[], None]:
    """Return what ends when the slowest rank has; all begin together, since the one before ended so."""

    def run_and_meet() -> None:
        run()
        dist.barrier()

    return run_and_meet


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _say(side: str, timings: Sequence[Timing]) -> Figure:
    taken = median_timing(timings)
    return Figure(side, f"{say_number(taken.wall * 1e3)} ms, {say_number(taken.cpu * 1e3)} ms CPU")
