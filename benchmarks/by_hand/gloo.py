"""The seed's graph by hand: one process for each replica and one that drives, with gloo's isend and irecv.

Everything is wired for 16 samples, and each process knows its messages beforehand: rank 0 drives, ranks 1 and 2 are
the policy, and 8 ranks each are reference, value and reward. Receives are posted one step ahead into buffers that
are used in turn. Nothing tells a process how many steps there will be: it waits for the next one until it is ended.

Use it in a process of its own, which has neither run torch nor started threads: it forks 26 processes first and
joins a process group then, as gloo wants it.
"""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

Tensor = torch.Tensor
Model = Callable[..., Tensor]

POLICIES, POLICY_ROWS, BATCHES = 2, 4, 4
SCORERS, SCORER_ROWS = 8, 2
DRIVER, POLICY, REFERENCE, VALUE, REWARD = 0, 1, 3, 11, 19
RANKS = 27


@dataclass(frozen=True)
class Call:
    """What a rank does for one call: receive from these ranks, run, send rows to these ranks.

    Attributes:
        receive: the rank that sends each input.
        rows: rows of the call.
        send: rank, first and last row of each fragment of the output, in the order of sending.
    """

    receive: tuple[int, ...]
    rows: int
    send: tuple[tuple[int, int, int], ...]


def calls_of(rank: int) -> tuple[str, list[Call]]:
    """Return the node that a rank serves and its calls in order."""
    if rank < REFERENCE:
        return "policy", [_policy_call(batch) for batch in range(rank - POLICY, BATCHES, POLICIES)]
    scorer, whole = (rank - REFERENCE) % SCORERS, (0, SCORER_ROWS)
    batch = scorer * SCORER_ROWS // POLICY_ROWS
    policy = POLICY + batch % POLICIES
    if rank < VALUE:
        return "reference", [Call((policy,), SCORER_ROWS, ((REWARD + scorer, *whole),))]
    if rank < REWARD:
        return "value", [Call((policy,), SCORER_ROWS, ((DRIVER, *whole),))]
    return "reward", [Call((policy, REFERENCE + scorer), SCORER_ROWS, ((DRIVER, *whole),))]


def _policy_call(batch: int) -> Call:
    halves = []
    for start in range(0, POLICY_ROWS, SCORER_ROWS):
        scorer = (batch * POLICY_ROWS + start) // SCORER_ROWS
        rows = start, start + SCORER_ROWS
        halves += [(first + scorer, *rows) for first in (REFERENCE, VALUE, REWARD)]
    return Call((DRIVER,), POLICY_ROWS, tuple(halves))


class GlooProgram:
    """27 processes that run the four models; use it in a ``with`` statement.

    Args:
        models: the four models by name.
        width: floats in a row.
    """

    def __init__(self, models: Mapping[str, Model], width: int) -> None:
        self._width = width
        self._folder = tempfile.TemporaryDirectory()
        meeting = str(Path(self._folder.name) / "meeting")
        torch.set_num_threads(1)
        fork = multiprocessing.get_context("fork")
        self._processes = [
            fork.Process(target=_serve, args=(rank, meeting, models, width), daemon=True)
            for rank in range(POLICY, RANKS)
        ]
        for process in self._processes:
            process.start()
        _join_group(DRIVER, meeting)

    def run(self, prompts: Tensor) -> dict[str, Tensor]:
        """Run one step on (16, width) prompts."""
        made = {name: torch.empty(len(prompts), self._width) for name in ("value", "reward")}
        waiting = [
            dist.irecv(made[name][scorer * SCORER_ROWS : (scorer + 1) * SCORER_ROWS], first + scorer)
            for name, first in (("value", VALUE), ("reward", REWARD))
            for scorer in range(SCORERS)
        ]
        for batch in range(BATCHES):
            rows = prompts[batch * POLICY_ROWS : (batch + 1) * POLICY_ROWS]
            waiting.append(dist.isend(rows, POLICY + batch % POLICIES))
        _wait_for(waiting)
        return made

    def __enter__(self) -> GlooProgram:
        return self

    def __exit__(self, *error: object) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.join()
        dist.destroy_process_group()
        self._folder.cleanup()


def _serve(rank: int, meeting: str, models: Mapping[str, Model], width: int) -> None:
    """Run a rank's calls, step after step, with the receives of the next step posted before those of this run."""
    _join_group(rank, meeting)
    name, calls = calls_of(rank)
    model = models[name]
    places = [[[torch.empty(call.rows, width) for _ in call.receive] for call in calls] for _ in range(2)]
    sent: list[list[Any]] = [[], []]
    arriving = _receive(calls, places[0])
    turn = 0
    while True:
        arrived, turn = arriving, 1 - turn
        _wait_for(sent[turn])
        arriving = _receive(calls, places[turn])
        sent[1 - turn] = sending = []
        for call, inputs, waits in zip(calls, places[1 - turn], arrived, strict=True):
            _wait_for(waits)
            made = model(*inputs)
            sending += [dist.isend(made[start:stop], to) for to, start, stop in call.send]


def _receive(calls: Sequence[Call], places: Sequence[Sequence[Tensor]]) -> list[list[Any]]:
    return [
        [dist.irecv(place, rank) for place, rank in zip(own, call.receive, strict=True)]
        for call, own in zip(calls, places, strict=True)
    ]


def _wait_for(works: Sequence[Any]) -> None:
    for work in works:
        work.wait()


def _join_group(rank: int, meeting: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=RANKS)
