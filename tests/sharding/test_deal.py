"""Whatever the sizes: each sample to one rank, even loads, no batch too large, and an order that comes back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flowsched.seeds import draw_entropy, row_seeds
from flowsched.sharding import Deal, Sharding
from flowsched.sharding.order import shuffle

SAMPLES = st.integers(0, 200)
SEEDS = st.one_of(st.none(), st.integers(0, 2**40))


@st.composite
def deals(draw: Any, modes: tuple[str, ...] = ("exact", "even"), tails: tuple[str, ...] = ("cut",)) -> Deal:
    """An epoch of whatever sizes, some of it seen."""
    group = draw(st.sampled_from([1, 1, 2, 4]))
    samples = draw(SAMPLES) // group * group
    seed = draw(SEEDS)
    lengths = draw(st.none() | st.lists(st.integers(0, 999), min_size=samples, max_size=samples))
    mode = draw(st.sampled_from(modes))
    sharding = Sharding(
        samples,
        draw(st.integers(1, 7)),
        draw(st.integers(group, 33)),
        mode,
        group=group,
        shuffle=seed is not None,
        seed=seed or 0,
        tail=draw(st.sampled_from(tails)) if mode == "even" else "cut",
        lengths=lengths,
    )
    return Deal(sharding, epoch=draw(st.integers(0, 3)), seen=draw(st.integers(0, samples // group)) * group)


def _all_batches(deal: Deal) -> list[list[list[int]]]:
    return [list(deal.lists(rank)) for rank in range(deal.sharding.ranks)]


def _flat(batches: list[list[list[int]]]) -> list[int]:
    return [sample for own in batches for batch in own for sample in batch]


def _unseen(deal: Deal) -> set[int]:
    """What an epoch from its beginning has, less what one that was seen so far had until then."""
    whole = Deal(deal.sharding, deal.epoch)
    units = whole._take(np.arange(deal.sharding.units))[deal.seen // deal.sharding.group :]
    group = deal.sharding.group
    return {int(unit) * group + at for unit in units for at in range(group)}


@settings(deadline=None)
@given(deals())
def test_each_sample_that_is_left_goes_to_exactly_one_rank(deal: Deal) -> None:
    dealt = _flat(_all_batches(deal))
    assert len(dealt) == len(set(dealt))
    assert set(dealt) == _unseen(deal)


@settings(deadline=None)
@given(deals())
def test_loads_differ_by_at_most_one_group_and_no_batch_is_too_large(deal: Deal) -> None:
    batches = _all_batches(deal)
    loads = [sum(map(len, own)) for own in batches]
    assert max(loads) - min(loads) <= deal.sharding.group
    assert all(len(batch) <= deal.sharding.batch_size for own in batches for batch in own)


@settings(deadline=None)
@given(deals())
def test_groups_stay_together_in_one_batch(deal: Deal) -> None:
    group = deal.sharding.group
    for own in _all_batches(deal):
        for batch in own:
            assert [sample // group * group for sample in batch[::group]] == batch[::group]
            assert [sample // group for sample in batch] == [
                first // group for first in batch[::group] for _ in range(group)
            ]


@settings(deadline=None)
@given(deals(modes=("exact",)))
def test_exact_has_no_empty_batch_and_as_few_as_can_be(deal: Deal) -> None:
    given_ = deal.sharding
    batches = _all_batches(deal)
    assert all(batch for own in batches for batch in own)
    window = given_.ranks * (given_.batch_size // given_.group)
    left = given_.units - deal.seen // given_.group
    assert max(map(len, batches)) == -(-left // window) == deal.steps


@settings(deadline=None)
@given(deals(modes=("even",), tails=("cut", "pad", "drop")))
def test_even_has_the_same_number_of_batches_on_each_rank(deal: Deal) -> None:
    batches = _all_batches(deal)
    assert {len(own) for own in batches} == {deal.steps}
    units = deal.sharding.units - deal.seen // deal.sharding.group
    if units >= deal.sharding.ranks and deal.sharding.batch_size // deal.sharding.group > 1:
        assert all(batch for own in batches for batch in own)


@settings(deadline=None)
@given(deals(modes=("even",), tails=("cut", "pad", "drop")))
def test_weights_make_of_the_mean_over_ranks_the_mean_over_rows(deal: Deal) -> None:
    ranks = range(deal.sharding.ranks)
    values = np.random.default_rng(0).random(deal.sharding.samples)
    for step in range(deal.steps):
        rows, products = [], []
        for rank in ranks:
            own = deal.batch(rank, step)[deal.real(rank, step)]
            rows.append(values[own])
            products.append(deal.weight(rank, step) * (values[own].mean() if len(own) else 0.0))
        assert np.mean(products) == pytest.approx(np.concatenate(rows).mean())


@settings(deadline=None)
@given(deals(modes=("even",), tails=("pad",)))
def test_padding_fills_every_batch_and_lists_what_comes_again(deal: Deal) -> None:
    dealt = _flat(_all_batches(deal))
    full = deal.sharding.batch_size // deal.sharding.group * deal.sharding.group
    assert {len(batch) for own in _all_batches(deal) for batch in own} <= {full}
    once = sorted(np.concatenate([deal.ids(rank) for rank in range(deal.sharding.ranks)]).tolist())
    assert once == sorted(_unseen(deal))
    assert sorted(dealt) == sorted([*once, *deal.padding.tolist()])


@settings(deadline=None)
@given(deals(modes=("even",), tails=("drop",)))
def test_dropping_lists_what_is_left_out(deal: Deal) -> None:
    dealt = _flat(_all_batches(deal))
    assert sorted([*dealt, *deal.dropped.tolist()]) == sorted(_unseen(deal))
    window = deal.sharding.ranks * (deal.sharding.batch_size // deal.sharding.group) * deal.sharding.group
    assert len(deal.dropped) < window


@settings(deadline=None)
@given(deals(tails=("cut", "pad", "drop")))
def test_rows_of_all_ranks_one_after_another_come_back_in_the_order_of_samples(deal: Deal) -> None:
    rows = np.concatenate([deal.ids(rank) for rank in range(deal.sharding.ranks)])
    assert rows[deal.places].tolist() == sorted(rows.tolist())


@settings(deadline=None)
@given(deals(), st.data())
def test_an_epoch_that_stops_goes_on_with_other_ranks_and_batch_sizes(
    deal: Deal, data: st.DataObject
) -> None:
    done = data.draw(st.integers(0, deal.steps))
    seen = [batch for own in _all_batches(deal) for batch in own[:done]]
    before = deal.sharding
    after = Sharding(
        before.samples,
        data.draw(st.integers(1, 7)),
        data.draw(st.integers(before.group, 33)),
        before.mode,
        group=before.group,
        shuffle=before.shuffle,
        seed=before.seed,
        lengths=before.lengths,
    )
    rest = Deal(after, deal.epoch, seen=deal.seen_after(done))
    both = [*(sample for batch in seen for sample in batch), *_flat(_all_batches(rest))]
    assert sorted(both) == sorted(_unseen(deal))


@settings(deadline=None)
@given(SAMPLES, st.integers(1, 33), st.integers(1, 7), SEEDS)
def test_local_keeps_everything_on_each_rank(
    samples: int, batch_size: int, ranks: int, seed: int | None
) -> None:
    sharding = Sharding(samples, ranks, batch_size, "local", shuffle=seed is not None, seed=seed or 0)
    deal = Deal(sharding)
    for rank in range(ranks):
        assert sorted(deal.ids(rank).tolist()) == list(range(samples))
        assert deal.batches(rank) == -(-samples // batch_size)


@settings(deadline=None)
@given(deals())
def test_batches_that_are_asked_for_singly_are_those_of_the_list(deal: Deal) -> None:
    for rank in range(deal.sharding.ranks):
        own = [deal.batch(rank, step).tolist() for step in range(deal.batches(rank))]
        assert own == list(deal.lists(rank))
        assert own[1:] == list(deal.lists(rank, begin=1))
        assert [len(batch) for batch in own] == deal.rows(rank).tolist()


@settings(deadline=None)
@given(deals(tails=("cut", "pad", "drop")))
def test_the_samples_of_a_rank_are_those_of_its_batches_without_what_pads(deal: Deal) -> None:
    ranks = range(deal.sharding.ranks)
    for rank, ids in zip(ranks, deal.ids_of(ranks), strict=True):
        steps = range(deal.batches(rank))
        assert ids.tolist() == [
            sample
            for step in steps
            for sample, real in zip(deal.batch(rank, step).tolist(), deal.real(rank, step), strict=True)
            if real
        ]


def test_many_steps_are_balanced_as_each_would_be_alone() -> None:
    lengths = np.random.default_rng(2).integers(0, 9, 5_000)
    deal = Deal(Sharding(5_000, 5, 12, "even", shuffle=True, lengths=lengths))
    assert deal.steps > 64
    for rank, ids in enumerate(deal.ids_of(range(5))):
        batches = [deal.batch(rank, step).tolist() for step in range(deal.steps)]
        assert batches == list(deal.lists(rank))
        assert ids.tolist() == [sample for batch in batches for sample in batch]


@pytest.mark.parametrize(
    ("samples", "longest"),
    [(1024, 16), (1000, 16), (1030, 17), (40, 1), (7, 1), (1021, 16), (1023, 16), (3, 1), (1, 1)],
)
def test_the_reported_evaluations_have_as_many_batches_as_they_should(samples: int, longest: int) -> None:
    deal = Deal(Sharding(samples, ranks=4, batch_size=16))
    assert max(deal.batches(rank) for rank in range(4)) == longest


def test_lengths_even_out_what_ranks_cost_in_a_step() -> None:
    lengths = np.random.default_rng(1).lognormal(4, 1, 4096)
    plain, fair = (
        Deal(Sharding(4096, 8, 16, "even", shuffle=True, lengths=given_)) for given_ in (None, lengths)
    )

    def slowest(deal: Deal) -> float:
        return sum(
            max(float(lengths[deal.batch(rank, step)].sum()) for rank in range(8))
            for step in range(deal.steps)
        )

    bound = lengths.sum() / 8
    assert slowest(fair) < 1.1 * bound < 1.2 * bound < slowest(plain)


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    orders = {
        tuple(Deal(Sharding(50, 1, 50, shuffle=True, seed=seed), epoch).batch(0, 0).tolist())
        for seed in range(3)
        for epoch in range(3)
    }
    assert len(orders) == 9


def test_an_order_stays_the_same_for_ever() -> None:
    deal = Deal(Sharding(8, 2, 2, shuffle=True, seed=7), epoch=1)
    assert list(deal.lists(0)) == [[2, 0], [1, 3]]
    assert list(deal.lists(1)) == [[6, 4], [7, 5]]


@pytest.mark.parametrize("units", [2**17 - 1, 2**17 + 1, 300_001])
def test_orders_of_many_are_sorted_by_the_same_keys_as_those_of_few(units: int) -> None:
    bits = (units - 1).bit_length()
    keys = row_seeds(draw_entropy(3, 2, "order"), 0, units) >> np.uint64(bits)
    expected = np.lexsort([np.arange(units), keys])
    assert np.array_equal(shuffle(units, seed=3, epoch=2), expected)
