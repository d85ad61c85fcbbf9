"""A loader is checked on all ranks together: threads stand for ranks here."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch._C._distributed_c10d import HashStore
from torch.utils.data import DataLoader, DistributedSampler

from flowsched.data.board import Board
from flowsched.data.check_loader import Checked, LoaderError, check_loader, check_on
from flowsched.data.loader import ShardedLoader
from flowsched.data.reading import Way
from flowsched.data.report import check_to_dict, say_verdict
from flowsched.data.stream import ShardedDataset

Load = Callable[[int, int], Any]


def check(load: Load, ranks: int, samples: int | None = None, patience: float = 20.0) -> list[Any]:
    """Return for each rank what checking returned or raised."""
    store = HashStore()

    def one(rank: int) -> Any:
        try:
            return check_on(Board(store, rank, ranks), lambda: load(rank, ranks), samples, patience=patience)
        except LoaderError as error:
            return error

    with ThreadPoolExecutor(ranks) as pool:
        return list(pool.map(one, range(ranks)))


def stock(data: Any, **options: Any) -> DataLoader[Any]:
    """Return torch's own loader over anything with numbered samples."""
    return DataLoader(data, **options)


def distributed(rank: int, ranks: int) -> Any:
    data: Any = torch.arange(10)
    return stock(data, batch_size=2, sampler=DistributedSampler(data, ranks, rank, shuffle=False))


def test_all_ranks_find_the_same() -> None:
    every = check(distributed, 4)
    assert len({str(one) for one in every}) == 1
    found = check_to_dict(every[0])
    assert (found["rows"], found["exact"], found["even"], found["by"]) == (12, False, True, "ids")
    assert found["repeated"] == [
        {"id": 0, "times": 2, "ranks": {"0": 1, "2": 1}, "places": [[0, 0, 0], [2, 1, 0]]},
        {"id": 1, "times": 2, "ranks": {"1": 1, "3": 1}, "places": [[1, 0, 0], [3, 1, 0]]},
    ]


@pytest.mark.parametrize("mode", ["exact", "even", "local"])
def test_flowscheds_own_loader_is_exact_in_every_mode(mode: str) -> None:
    every = check(lambda rank, ranks: ShardedLoader(torch.arange(7), 2, mode, rank=rank, ranks=ranks), 3)
    assert every[0].findings.exact
    assert every[0].findings.expected == (21 if mode == "local" else 7)
    assert every[0].findings.even == (mode != "exact")


@pytest.mark.parametrize("samples", [20, 21])
def test_ranks_with_data_sets_of_their_own_are_compared_by_what_these_hold(samples: int) -> None:
    data = torch.arange(100, 100 + samples)
    (first, *_) = check(lambda rank, ranks: stock(data[rank::ranks], batch_size=4), 2)
    assert first.way == Way.DIGESTS
    assert (first.findings.exact, first.findings.expected) == (True, samples)


def test_data_sets_of_their_own_that_overlap_are_found_out() -> None:
    data = torch.arange(20)
    (first, *_) = check(lambda rank, _: stock(data[9 * rank : 9 * rank + 11], batch_size=4), 2, 20)
    assert (first.findings.surplus, first.findings.exact) == (2, False)
    assert "2 samples repeated" in say_verdict(first)


def test_a_loader_that_fails_on_one_rank_fails_on_all_with_its_traceback() -> None:
    class Bad:
        def __init__(self, rank: int) -> None:
            self.rank = rank

        def __iter__(self) -> Any:
            yield torch.arange(3)
            if self.rank == 1:
                raise RuntimeError("bad row 17")

    every = check(lambda rank, _: Bad(rank), 3)
    assert {str(one) for one in every} == {
        "rank 1 of 3: reading the loader failed with RuntimeError: bad row 17. Mend the loader, or what it reads"
    }
    assert all("in __iter__" in one.__notes__[0] for one in every)
    assert [one.speaker for one in every] == [0, 0, 0]


def test_a_loader_that_cannot_be_made_is_said_once_for_all_ranks() -> None:
    def make(_: int, ranks: int) -> Any:
        raise KeyError(f"no data for {ranks}")

    every = check(make, 2)
    assert {str(one).split(":")[0] for one in every} == {"every rank"}


def test_a_rank_that_never_answers_is_named() -> None:
    store = HashStore()
    with pytest.raises(LoaderError, match="rank 1 of 2: rank 1 has not answered"):
        check_on(Board(store, 0, 2), lambda: [1], patience=0.3)


def test_one_process_is_checked_as_it_is() -> None:
    loader = stock(range(10), batch_size=4, drop_last=True)
    for _ in range(2):
        checked = check_loader(loader)
        assert isinstance(checked, Checked)
        assert checked.findings.missing.tolist() == [8, 9]
    assert "This is what one process reads" in str(checked)


def test_samples_that_are_given_tell_what_a_stream_misses() -> None:
    (first,) = check(lambda *_: [torch.arange(5)], 1, samples=7)
    assert (first.findings.unread, first.findings.exact) == (2, False)
    assert "missing: 2 samples; which ones, what was read does not say" in str(first)
    (first,) = check(lambda *_: [torch.arange(5)], 1)
    assert "give --samples" in say_verdict(first)


def test_large_messages_go_in_parts() -> None:
    store = HashStore()
    left, right = Board(store, 0, 2), Board(store, 1, 2)
    message = torch.randint(0, 256, (9 << 20,), dtype=torch.uint8).numpy().tobytes()
    left.put("large", message)
    assert right.take("large", 0, patience=1.0) == message


def test_ranks_join_after_all_have_loaded_unless_a_loader_is_not_made() -> None:
    store, joined = HashStore(), []

    def one(rank: int, fails: bool) -> Any:
        def load() -> Any:
            if fails and rank == 1:
                raise RuntimeError("no data")
            return [torch.arange(3) + 3 * rank]

        try:
            return check_on(Board(store, rank, 2), load, 6, patience=20.0, join=lambda: joined.append(rank))
        except LoaderError as error:
            return error

    with ThreadPoolExecutor(2) as pool:
        failed = list(pool.map(lambda rank: one(rank, fails=True), range(2)))
        assert joined == []
        exact = list(pool.map(lambda rank: one(rank, fails=False), range(2)))
    assert sorted(joined) == [0, 1]
    assert all("no data" in str(error) for error in failed)
    assert all(checked.findings.exact for checked in exact)


def test_a_stream_of_unknown_length_has_no_deal_and_is_read() -> None:
    def load(rank: int, ranks: int) -> Any:
        data: Any = ShardedDataset(iter(range(13)), 2, "even", rank=rank, ranks=ranks)
        return DataLoader(data, batch_size=None)

    (first, _) = check(load, 2, samples=13)
    assert (first.findings.exact, first.findings.rows) == (True, 13)


def test_a_loader_that_exits_is_said() -> None:
    every = check(lambda rank, _: [torch.arange(3)] if rank else sys.exit(7), 2)
    assert all("rank 0 of 2" in str(one) and "SystemExit: 7" in str(one) for one in every)


def test_one_process_is_never_called_exact_without_saying_that_it_is_one() -> None:
    (first,) = check(lambda *_: stock(range(10), batch_size=4), 1)
    assert say_verdict(first) == "EXACT on one process: each of 10 samples is read once"


def test_a_stream_without_end_is_given_up_after_patience_or_many_samples() -> None:
    class Endless:
        def __iter__(self) -> Any:
            return (torch.tensor([number]) for number in itertools.count())

    every = check(lambda *_: Endless(), 2, patience=0.5)
    assert {say_verdict(one) for one in every} == {"WRONG: the loader does not end"}
    assert "give more --patience" in str(every[0])
    (first,) = check(lambda *_: Endless(), 1, samples=10)
    assert (first.endless, first.findings.rows) == ((0,), 1_041)
