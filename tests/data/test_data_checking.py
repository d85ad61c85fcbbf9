"""What ranks have read is compared rightly, whatever they have read."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flowsched.data.checking import RankRows, compare

BATCHES = st.lists(st.lists(st.integers(0, 12), max_size=4), max_size=5)
RANKS = st.lists(BATCHES, min_size=1, max_size=4)


def rows_of(batches: list[list[int]], real: list[bool] | None = None) -> RankRows:
    keys = [key for batch in batches for key in batch]
    sizes = [len(batch) for batch in batches]
    counts = np.full(len(keys), True) if real is None else np.array(real, dtype=bool)
    return RankRows(np.array(keys, dtype=np.int64), np.array(sizes, dtype=np.int64), counts)


@given(RANKS, st.integers(0, 13))
def test_findings_are_what_counting_by_hand_finds(ranks: list[list[list[int]]], expected: int) -> None:
    found = compare([rows_of(batches) for batches in ranks], expected)
    counted = Counter(key for batches in ranks for batch in batches for key in batch)
    assert dict(zip(found.repeated.tolist(), found.times.tolist(), strict=True)) == {
        key: times for key, times in counted.items() if times > 1
    }
    assert found.missing.tolist() == [key for key in range(expected) if key not in counted]
    assert found.unknown.tolist() == sorted(key for key in counted if key >= expected)
    assert found.rows == counted.total()
    assert found.surplus == counted.total() - len(counted)
    assert found.exact == (dict(counted) == dict.fromkeys(range(expected), 1))
    assert found.even == (len({len(batches) for batches in ranks}) == 1)


@given(RANKS)
def test_a_sample_is_found_where_it_is(ranks: list[list[list[int]]]) -> None:
    found = compare([rows_of(batches) for batches in ranks], None)
    for key in found.repeated.tolist():
        places = found.places(key, most=100)
        assert all(ranks[rank][batch][row] == key for rank, batch, row in places)
        assert len(set(places)) == len(places) == sum(found.holders(key).values())
        assert found.holders(key) == dict(Counter(rank for rank, _, _ in places))


@given(st.integers(1, 60), st.integers(1, 5), st.data())
def test_one_sample_too_many_or_too_few_is_seen(samples: int, ranks: int, data: st.DataObject) -> None:
    dealt = [[list(range(rank, samples, ranks))] for rank in range(ranks)]
    assert compare([rows_of(batches) for batches in dealt], samples).exact
    victim = data.draw(st.integers(0, samples - 1))
    dealt[victim % ranks][0].remove(victim)
    found = compare([rows_of(batches) for batches in dealt], samples)
    assert (found.missing.tolist(), found.exact) == ([victim], False)
    other = data.draw(st.sampled_from([key for key in range(samples) if key != victim] or [victim]))
    dealt[victim % ranks][0] += [victim, other]
    found = compare([rows_of(batches) for batches in dealt], samples)
    assert found.repeated.tolist() == ([other] if other != victim else [victim])
    assert not found.exact


def test_rows_that_pad_are_no_repeats() -> None:
    ranks = [rows_of([[0, 1]]), rows_of([[2, 0]], real=[True, False])]
    found = compare(ranks, 3)
    assert found.exact
    assert (found.rows, found.ranks[1].rows, found.ranks[1].padding) == (3, 1, 1)


def test_without_ids_samples_that_nobody_has_are_counted() -> None:
    found = compare([rows_of([[0, 1]]), rows_of([[2]])], 5, named=False)
    assert (found.unread, len(found.missing), found.exact) == (2, 0, False)
    assert compare([rows_of([[0, 1]])], None, named=False).exact


def test_everything_on_each_rank_is_told_from_repeats_on_some() -> None:
    assert compare([rows_of([[0, 1]]), rows_of([[1, 0]])], 2).everything
    assert not compare([rows_of([[0, 0]]), rows_of([[0, 0]])], 1).everything
    assert not compare([rows_of([[0, 1]]), rows_of([[1, 2]])], 3).everything
    assert not compare([rows_of([[0, 1]])], 2).everything
    assert not compare([rows_of([]), rows_of([])], 0).everything
