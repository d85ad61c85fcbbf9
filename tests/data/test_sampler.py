"""A stock DataLoader with the batch sampler has each sample once, whatever the sizes, and can resume."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from flowsched.data import ShardedBatchSampler
from flowsched.sharding import ShardingError
from tests.data.sizes import Sizes, sizes


def make(sizes: Sizes) -> list[ShardedBatchSampler]:
    """The samplers of all ranks."""
    return [ShardedBatchSampler(sizes.samples, **sizes.of(rank)) for rank in range(sizes.ranks)]


def flat(batches: list[list[list[int]]]) -> list[int]:
    """All samples of all ranks."""
    return [sample for own in batches for batch in own for sample in batch]


@settings(deadline=None)
@given(sizes())
def test_each_sample_is_handed_out_once_and_the_lengths_are_known(sizes: Sizes) -> None:
    samplers = make(sizes)
    batches = [list(sampler) for sampler in samplers]
    assert sorted(flat(batches)) == list(range(sizes.samples))
    assert [len(own) for own in batches] == [len(sampler) for sampler in samplers]
    assert [sampler.weights.shape for sampler in samplers] == [(len(own),) for own in batches]
    if sizes.mode == "even":
        assert len({len(own) for own in batches}) == 1


@settings(deadline=None)
@given(sizes())
def test_what_is_iterated_again_is_the_same_and_another_epoch_is_whole(sizes: Sizes) -> None:
    for sampler in make(sizes):
        first = list(sampler)
        assert list(sampler) == first
        sampler.set_epoch(3)
        assert len(list(sampler)) == len(first)


@settings(deadline=None)
@given(sizes(), st.integers(0, 9), st.integers(1, 7), st.integers(1, 33), st.data())
def test_an_epoch_goes_on_at_the_next_unseen_sample_with_other_ranks_and_batches(
    sizes: Sizes, epoch: int, ranks: int, batch_size: int, data: st.DataObject
) -> None:
    before = make(sizes)
    for sampler in before:
        sampler.set_epoch(epoch)
    done = data.draw(st.integers(0, before[0].deal.steps))
    seen = [list(islice(sampler, done)) for sampler in before]
    states = [sampler.state_dict(done) for sampler in before]
    assert all(state == states[0] for state in states)

    resized = sizes.resized(ranks, batch_size)
    after = make(resized)
    for sampler in after:
        sampler.load_state_dict(states[0])
    rest = [list(sampler) for sampler in after]
    assert [sampler.epoch for sampler in after] == [epoch] * ranks
    assert sorted(flat(seen) + flat(rest)) == list(range(sizes.samples))
    again = [list(sampler) for sampler in after]
    assert sorted(flat(again)) == list(range(sizes.samples)), "the epoch after what was left is whole"


@settings(deadline=None)
@given(sizes())
def test_the_state_after_a_whole_epoch_has_nothing_left_on_any_rank(sizes: Sizes) -> None:
    samplers = make(sizes)
    for sampler in samplers:
        list(sampler)
    states = [sampler.state_dict() for sampler in samplers]
    assert all(state == states[0] for state in states)
    for rank, sampler in enumerate(make(sizes)):
        sampler.load_state_dict(states[rank])
        assert (len(sampler), list(sampler)) == (0, [])


def test_a_stock_loader_with_workers_and_pinned_memory_takes_the_sampler() -> None:
    several: tuple[dict[str, Any], ...] = (
        {},
        {"num_workers": 2},
        {"num_workers": 2, "persistent_workers": True},
    )
    for options in several:
        samplers = [ShardedBatchSampler(23, 4, rank=rank, ranks=3, shuffle=True) for rank in range(3)]
        numbers: Any = range(23)
        loaders: list[DataLoader[int]] = [
            DataLoader(numbers, batch_sampler=sampler, **options) for sampler in samplers
        ]
        for epoch in range(2):
            for sampler in samplers:
                sampler.set_epoch(epoch)
            rows = [[batch.tolist() for batch in loader] for loader in loaders]
            assert rows == [list(sampler.deal.lists(rank)) for rank, sampler in enumerate(samplers)]
            assert [len(loader) for loader in loaders] == [len(own) for own in rows]
            assert sorted(flat(rows)) == list(range(23))


def test_batches_that_were_handed_out_are_counted_unless_their_number_is_given() -> None:
    sampler = ShardedBatchSampler(100, 5, rank=0, ranks=2)
    handed = iter(sampler)
    for _ in range(3):
        next(handed)
    assert sampler.state_dict()["seen"] == 30
    assert sampler.state_dict(batches=2)["seen"] == 20
    with pytest.raises(ShardingError, match=r"11 is none of 0 to 10"):
        sampler.state_dict(batches=11)


def test_a_peek_does_not_lose_what_is_left_of_a_resumed_epoch() -> None:
    sampler = ShardedBatchSampler(10, 5, rank=0, ranks=1)
    sampler.load_state_dict(sampler.state_dict(batches=1))
    assert next(iter(sampler)) == [5, 6, 7, 8, 9]
    assert list(sampler) == [[5, 6, 7, 8, 9]]
    assert list(sampler) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


def test_an_epoch_of_dropped_samples_ends_with_nothing_left_for_anybody() -> None:
    before = ShardedBatchSampler(10, 4, "even", tail="drop", rank=0, ranks=2)
    list(before)
    after = ShardedBatchSampler(10, 1, "even", rank=0, ranks=2)
    after.load_state_dict(before.state_dict())
    assert list(after) == []


def test_sizes_may_be_numbers_of_numpy_and_data_of_any_length() -> None:
    assert len(ShardedBatchSampler(np.int64(10), 2, rank=0, ranks=1)) == 5  # type: ignore[arg-type]
    assert len(ShardedBatchSampler("letters", 2, rank=0, ranks=1)) == 4
    with pytest.raises(ShardingError, match=r"samples: <generator .*> \(generator\) is no whole number"):
        ShardedBatchSampler((one for one in "ab"), 2, rank=0, ranks=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("epoch", [-1, 1.5, True, "2"])
def test_what_is_no_epoch_is_refused(epoch: int) -> None:
    with pytest.raises(ShardingError, match=r"is no number of an epoch\. Count from 0"):
        ShardedBatchSampler(10, 2, rank=0, ranks=1).set_epoch(epoch)
