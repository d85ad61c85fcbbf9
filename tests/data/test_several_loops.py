"""Loops inside loops, states loaded in the middle of one, wrappers: what a loader says of its place stays true."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from torch.utils.data import DataLoader, IterableDataset

from flowsched.data import DoubleShardingError, ShardedBatchSampler, ShardedDataset, ShardedLoader, gather
from flowsched.data.gathering import GatherError
from flowsched.sharding import Deal, Sharding, ShardingError

MAKERS = pytest.mark.parametrize("make", [ShardedLoader, ShardedBatchSampler, ShardedDataset])


@MAKERS
def test_a_loop_within_a_loop_does_not_end_the_outer_one(make: Any) -> None:
    loader = make(range(20), 2)
    for step, _ in enumerate(loader):
        if step == 1:
            assert sum(1 for _ in loader) == 10
        if step == 3:
            state = loader.state_dict()
            break
    assert state["seen"] == 8
    again = ShardedLoader(range(20), 2)
    again.load_state_dict(state)
    assert [one for batch in again for one in batch.tolist()] == list(range(8, 20))


def test_a_loop_that_a_loaded_state_has_left_behind_is_over() -> None:
    loader = ShardedLoader(range(20), 2, shuffle=True)
    state = loader.state_dict(3)
    batches = iter(loader)
    next(batches)
    loader.load_state_dict(state)
    with pytest.raises(ShardingError, match="a state was loaded"):
        next(batches)
    assert loader.state_dict()["seen"] == 6


def test_rows_are_counted_against_what_the_loader_has_yielded() -> None:
    loader = ShardedLoader(range(64), 4)
    means = [float(batch.float().mean()) for batch in loader]
    with pytest.raises(GatherError, match="16 is the number of its batches"):
        gather(means, loader)
    rows = [one for batch in loader for one in batch.tolist()]
    with pytest.raises(GatherError, match="it has 32 rows, and 64 samples"):
        gather(rows[:32], loader)
    loader.set_epoch(1)
    with pytest.raises(GatherError, match="it has 64 rows, and 0 samples"):
        gather(rows, loader)


class Wrapped(IterableDataset[Any]):
    """What a user puts around a data set."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __iter__(self) -> Iterator[Any]:
        yield from self.data


def test_what_is_dealt_is_not_dealt_again_through_a_wrapper_of_the_users() -> None:
    accelerate: Any = pytest.importorskip("accelerate.data_loader")
    data = Wrapped(ShardedDataset(range(10), 2))
    shard = accelerate.IterableDatasetShard(data, batch_size=1, num_processes=2, process_index=0)
    with pytest.raises(DoubleShardingError, match="IterableDatasetShard"):
        list(DataLoader(shard, batch_size=None))


def test_numbers_of_numpy_do_not_overflow() -> None:
    batch_size: Any = np.uint8(100)
    given = [ShardedBatchSampler(200, batch_size, rank=rank, ranks=3) for rank in range(3)]
    assert [sum(map(len, sampler)) for sampler in given] == [67, 67, 66]


@pytest.mark.parametrize("batches", [1.5, True, "1", -1, 11])
def test_a_state_after_no_number_of_batches_is_refused(batches: Any) -> None:
    with pytest.raises(ShardingError, match="is none of 0 to 10"):
        ShardedLoader(range(20), 2).state_dict(batches)


@pytest.mark.parametrize(("epoch", "seen"), [("a", 0), (-1, 0), (0, 100), (0, -2), (0, 3)])
def test_an_epoch_that_cannot_be_is_refused(epoch: Any, seen: int) -> None:
    with pytest.raises(ShardingError, match="the epoch has 1 problem"):
        Deal(Sharding(8, 2, 4, group=2), epoch, seen)


def test_a_place_of_other_numbers_is_refused() -> None:
    place: Any = {"rank": 0.5, "ranks": 2}
    with pytest.raises(ShardingError, match=r"rank=0\.5, ranks=2 are no whole numbers"):
        ShardedBatchSampler(10, 2, **place)
