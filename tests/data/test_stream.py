"""Batches of data sets and of streams come in the same order for any workers, and resume where they stood."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from flowsched.data import ShardedDataset
from flowsched.sharding import Deal, Sharding, ShardingError
from tests.data.sizes import Sizes, Stream, sizes


def make(sizes: Sizes, known: bool, **options: Any) -> list[ShardedDataset]:
    """The data sets of all ranks."""
    data = range(sizes.samples) if known else Stream(sizes.samples)
    return [ShardedDataset(data, **sizes.of(rank), collate_fn=list, **options) for rank in range(sizes.ranks)]


@settings(deadline=None)
@given(sizes(modes=("exact", "even", "local"), plain=True))
def test_a_stream_is_dealt_as_if_its_length_had_been_known(sizes: Sizes) -> None:
    deal = Deal(Sharding(sizes.samples, sizes.ranks, sizes.batch_size, sizes.mode, sizes.group))
    for rank, data in enumerate(make(sizes, known=False, weighted=True)):
        dealt = list(data)
        assert [rows for rows, _ in dealt] == list(deal.lists(rank))
        assert [weight for _, weight in dealt] == [
            deal.weight(rank, step) for step in range(deal.batches(rank))
        ]


@settings(deadline=None)
@given(sizes(modes=("exact", "even", "local")))
def test_data_of_known_length_is_dealt_by_the_rule(sizes: Sizes) -> None:
    for rank, data in enumerate(make(sizes, known=True)):
        assert list(data) == list(data.deal.lists(rank))
        assert len(data) == len(list(data)) == len(data.weights)


@settings(deadline=None)
@given(sizes(plain=True), st.integers(1, 7), st.integers(1, 33), st.booleans(), st.data())
def test_an_epoch_goes_on_with_other_ranks_and_batches(
    sizes: Sizes, ranks: int, batch_size: int, known: bool, data: st.DataObject
) -> None:
    deal = Deal(Sharding(sizes.samples, sizes.ranks, sizes.batch_size, sizes.mode, sizes.group))
    done = data.draw(st.integers(0, deal.steps))
    before = make(sizes, known)
    seen = [one for own in before for batch in islice(own, done) for one in batch]
    states = [own.state_dict(done) for own in before if len(list(own)) >= 0]
    assert all(state == states[0] for state in states)
    after = make(sizes.resized(ranks, batch_size), known)
    for own in after:
        own.load_state_dict(states[0])
    rest = [one for own in after for batch in own for one in batch]
    assert sorted(seen + rest) == list(range(sizes.samples))
    assert sorted(one for own in after for batch in own for one in batch) == list(range(sizes.samples))


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("workers", [0, 1, 2, 3])
def test_workers_take_batches_in_turn(known: bool, workers: int) -> None:
    sizes = Sizes(53, 2, 4, "even", 1, known, 3, None)
    for rank, data in enumerate(make(sizes, known)):
        loader = DataLoader(data, batch_size=None, num_workers=workers)
        alone = list(make(sizes, known)[rank])
        assert [list(batch) for batch in loader] == alone
        if known:
            assert len(loader) == len(alone)
        else:
            with pytest.raises(TypeError, match="has no length"):
                len(loader)


@pytest.mark.parametrize(("known", "context"), [(True, "fork"), (False, "fork"), (True, "spawn")])
def test_workers_that_persist_hear_of_epochs_and_states(known: bool, context: str) -> None:
    sizes = Sizes(40, 2, 4, "exact", 1, known, 3, None)
    data, alone = make(sizes, known)[1], make(sizes, known)[1]
    loader = DataLoader(
        data, batch_size=None, num_workers=2, persistent_workers=True, multiprocessing_context=context
    )
    orders = []
    for epoch in range(2):
        data.set_epoch(epoch)
        alone.set_epoch(epoch)
        orders.append([list(batch) for batch in loader])
        assert orders[-1] == list(alone)
    assert orders[0] != orders[1]
    state = data.state_dict(batches=2)
    assert state["seen"] == 16
    data.load_state_dict(state)
    assert [list(batch) for batch in loader] == orders[1][2:]
    assert [list(batch) for batch in loader] == orders[1]
    assert data.state_dict(batches=1)["seen"] == 8


def test_batches_are_counted_here_and_must_be_told_where_workers_yield_them() -> None:
    data = ShardedDataset(range(20), 2, rank=0, ranks=2)
    assert data.state_dict()["seen"] == 0
    for _ in islice(data, 3):
        pass
    assert data.state_dict()["seen"] == 12
    list(data)
    assert data.state_dict()["seen"] == 20
    next(iter(DataLoader(data, batch_size=None, num_workers=1)))
    with pytest.raises(ShardingError, match=r"workers yield the batches.*give state_dict\(batches=...\)"):
        data.state_dict()
    assert data.state_dict(batches=1)["seen"] == 4


def test_batches_are_collated_as_a_loader_would() -> None:
    data = ShardedDataset([{"id": one} for one in range(4)], 3, rank=0, ranks=1)
    assert [batch["id"].tolist() for batch in DataLoader(data, batch_size=None)] == [[0, 1, 2], [3]]


@pytest.mark.parametrize("known", [True, False])
def test_a_rank_without_samples_in_a_step_has_a_batch_of_no_rows(known: bool) -> None:
    given_ = [torch.full((3,), one) for one in range(2)]
    dealt = [
        list(ShardedDataset(given_ if known else iter(given_), 4, "even", rank=rank, ranks=4))
        for rank in range(4)
    ]
    assert [[tuple(batch.shape) for batch in own] for own in dealt] == [
        [(1, 3)],
        [(1, 3)],
        [(0, 3)],
        [(0, 3)],
    ]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"shuffle": True}, r"\[unknown-length\] shuffle: the data arrives one after another"),
        ({"mode": "even", "tail": "pad"}, r"\[unknown-length\] tail"),
        ({"lengths": [1, 2]}, r"\[unknown-length\] lengths"),
    ],
)
def test_what_needs_the_length_is_refused_for_streams(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ShardingError, match=said):
        ShardedDataset(Stream(2), 2, rank=0, ranks=1, **wrong)


def test_a_stream_that_cuts_a_group_or_is_shorter_than_what_was_seen_is_refused() -> None:
    with pytest.raises(ShardingError, match=r"\[group-cut\] data: 7 samples do not make whole groups of 2"):
        list(ShardedDataset(Stream(7), 2, group=2, rank=0, ranks=1))
    longer, shorter = (ShardedDataset(Stream(samples), 2, rank=0, ranks=1) for samples in (9, 3))
    shorter.load_state_dict(longer.state_dict(batches=2))
    with pytest.raises(ShardingError, match="the stream ends after 3 samples, of which 4 have been seen"):
        list(shorter)


def test_states_of_streams_and_of_data_sets_are_not_each_others() -> None:
    stream, known = (ShardedDataset(data, 2, rank=0, ranks=1) for data in (Stream(8), range(8)))
    with pytest.raises(ShardingError, match="samples: the state has None, and here it is 8"):
        known.load_state_dict(stream.state_dict(batches=1))
    with pytest.raises(ShardingError, match="samples: the state has 8, and here it is None"):
        stream.load_state_dict(known.state_dict(batches=1))
