"""Process groups of 1 to 7 real processes are dealt, and gather, each sample once."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
import torch.distributed as dist

from flowsched.data import ShardedBatchSampler, ShardedLoader, gather
from flowsched.sharding import ShardingError
from tests.data.ranks import run_on_ranks

RANKS = 7


def draw_sizes(ranks: int) -> list[tuple[int, int, str]]:
    """Samples, batch sizes and modes: edges, and some at random."""
    drawn = random.Random(ranks)
    edges = [0, 1, ranks - 1, ranks, ranks + 1, 200]
    samples = edges + [drawn.randint(0, 200) for _ in range(6)]
    return [(count, drawn.randint(1, 33), mode) for count in samples for mode in ("exact", "even")]


def gather_in_groups(rank: int, _: int) -> list[Any]:
    """Return what went wrong in each group that this rank is in; no group deals anything wrong."""
    wrong: list[Any] = []
    for ranks in range(1, RANKS + 1):
        group = dist.new_group(list(range(ranks)))
        if rank >= ranks:
            continue
        for samples, batch_size, mode in draw_sizes(ranks):
            loader = ShardedLoader(range(samples), batch_size, mode, shuffle=True, process_group=group)
            rows = [row for batch in loader for row in batch.tolist()]
            gathered = gather(torch.tensor(rows, dtype=torch.int64), loader, process_group=group)
            if (loader.rank, loader.ranks) != (rank, ranks) or gathered.tolist() != list(range(samples)):
                wrong.append((ranks, samples, batch_size, mode, gathered.tolist()))
    return wrong


def count_outside(rank: int, ranks: int) -> int:
    """Return how many ranks are told that they have no place in a group of two."""
    group = dist.new_group([0, ranks - 1])
    try:
        return ShardedBatchSampler(10, 2, process_group=group).rank
    except ShardingError as error:
        return -1 if f"this process, rank {rank} of the default group, is not in it" in str(error) else -2


def resume_elsewhere(rank: int, ranks: int) -> list[int]:
    """Return all that a group of 7 and then, from its state, one of 3 and then 5 of them have seen."""
    groups = {size: dist.new_group(list(range(size))) for size in (ranks, 3, 5)}
    seen: list[int] = []
    state: dict[str, Any] | None = None
    for size, steps in ((ranks, 2), (3, 3), (5, 99)):
        if rank < size:
            loader = ShardedLoader(range(191), 4, shuffle=True, seed=5, process_group=groups[size])
            if state:
                loader.load_state_dict(state)
            own = []
            for step, batch in enumerate(loader):
                own += batch.tolist()
                state = loader.state_dict()
                if step + 1 == steps:
                    break
            told: list[list[int]] = [[] for _ in range(size)]
            dist.all_gather_object(told, own, group=groups[size])
            seen += [one for rows in told for one in rows]
        saved = [state]  # as in a file that all ranks read
        dist.broadcast_object_list(saved, src=0)
        state = saved[0]
    return seen


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What 7 processes say."""
    cases = {"gathered": gather_in_groups, "outside": count_outside, "resumed": resume_elsewhere}
    return run_on_ranks(RANKS, cases, tmp_path_factory.mktemp("groups"), seconds=100)


def test_groups_of_any_number_of_ranks_gather_every_row_once(outcomes: list[dict[str, Any]]) -> None:
    assert [outcome["gathered"] for outcome in outcomes] == [[]] * RANKS


def test_a_process_outside_its_group_is_told(outcomes: list[dict[str, Any]]) -> None:
    assert [outcome["outside"] for outcome in outcomes] == [0, -1, -1, -1, -1, -1, 1]


def test_an_epoch_goes_on_with_fewer_and_with_more_processes(outcomes: list[dict[str, Any]]) -> None:
    assert sorted(outcomes[0]["resumed"]) == list(range(191))
