"""Several processes of one gloo group, each of which runs the same cases and says what came of each."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from flowsched.errors import FlowschedError, ProblemsError

Case = Callable[[int, int], Any]
"""Is called with the rank and the number of ranks."""
Outcomes = list[dict[str, Any]]
"""For each rank, by name of the case, what it returned or the error that it raised."""


def run_on_ranks(ranks: int, cases: Mapping[str, Case], folder: Path, seconds: float = 60) -> Outcomes:
    """Run all cases in turn in so many processes, and return what came of them.

    Raises:
        TimeoutError: they have not ended in time; they are killed.
        RuntimeError: one has died.
    """
    context = mp.get_context("fork")
    processes = [
        context.Process(target=_run, args=(rank, ranks, cases, folder), daemon=True) for rank in range(ranks)
    ]
    for process in processes:
        process.start()
    try:
        end = time.monotonic() + seconds
        for process in processes:
            process.join(max(0.0, end - time.monotonic()))
        if any(process.is_alive() for process in processes):
            raise TimeoutError(f"{ranks} ranks did not end within {seconds} s")
    finally:
        for process in processes:
            if process.is_alive():
                process.kill()
                process.join()
    if any(process.exitcode for process in processes):
        raise RuntimeError(f"ranks ended with {[process.exitcode for process in processes]}")
    return [torch.load(folder / f"{rank}", weights_only=False) for rank in range(ranks)]


def _run(rank: int, ranks: int, cases: Mapping[str, Case], folder: Path) -> None:
    torch.set_num_threads(1)
    # The longest that a rank waits for others; one that waits for ever would be a failure of the test.
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder / 'store'}",
        rank=rank,
        world_size=ranks,
        timeout=timedelta(seconds=30),
    )
    outcomes: dict[str, Any] = {}
    for name, case in cases.items():
        try:
            outcomes[name] = case(rank, ranks)
        except FlowschedError as error:
            outcomes[name] = Refusal(error)
    torch.save(outcomes, folder / f"{rank}")
    with contextlib.suppress(Exception):
        dist.destroy_process_group()


class Refusal:
    """An error of flowsched's that a case raised: its type, its text, its codes and its cause."""

    def __init__(self, error: FlowschedError) -> None:
        self.kind = type(error).__name__
        self.text = str(error)
        self.codes = [problem.code for problem in error.problems] if isinstance(error, ProblemsError) else []
        self.cause = type(error.__cause__).__name__ if error.__cause__ is not None else None
