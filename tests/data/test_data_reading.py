"""What is read of a loader is what it gives, and the loader is left as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    SequentialSampler,
)

from flowsched.data.checking import Findings, RankRows, compare
from flowsched.data.digests import digest, rows_of
from flowsched.data.loader import ShardedLoader
from flowsched.data.reading import Way, count_samples, probe, read_loader, say_kind
from flowsched.data.sampler import ShardedBatchSampler

Loaders = Callable[[Any, int, int, int], DataLoader[Any]]


class Refusing(Dataset[Any]):
    """A data set that is not to be loaded."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        raise AssertionError(f"sample {index} was loaded")


class Squares(IterableDataset[Any]):
    """A stream of rows that pad to the longest when they are collated."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[Any]:
        return iter([{"x": torch.arange(i), "name": f"n{i}"} for i in range(self.count)])


def read_all(loaders: Loaders, samples: int, size: int, ranks: int) -> Findings:
    """Read each rank's loader in this process, without loading data."""
    data = Refusing(samples)
    readings = [read_loader(loaders(data, size, rank, ranks), Way.IDS) for rank in range(ranks)]
    return compare([RankRows(one.keys, one.sizes, one.real) for one in readings], readings[0].samples)


def stock(data: Any, **options: Any) -> DataLoader[Any]:
    """Return torch's own loader over anything with numbered samples."""
    return DataLoader(data, **options)


def distributed(data: Any, size: int, rank: int, ranks: int) -> DataLoader[Any]:
    sampler: DistributedSampler[Any] = DistributedSampler(data, num_replicas=ranks, rank=rank, shuffle=True)
    return stock(data, batch_size=size, sampler=sampler)


def dropping(data: Any, size: int, rank: int, ranks: int) -> DataLoader[Any]:
    sampler: DistributedSampler[Any] = DistributedSampler(data, num_replicas=ranks, rank=rank, drop_last=True)
    return stock(data, batch_size=size, sampler=sampler)


def ours(data: Any, size: int, rank: int, ranks: int) -> DataLoader[Any]:
    return stock(data, batch_sampler=ShardedBatchSampler(data, size, rank=rank, ranks=ranks))


def accelerated(even: bool) -> Loaders:
    shard = pytest.importorskip("accelerate.data_loader").BatchSamplerShard

    def load(data: Any, size: int, rank: int, ranks: int) -> DataLoader[Any]:
        batches = BatchSampler(SequentialSampler(data), size, drop_last=False)
        return stock(data, batch_sampler=shard(batches, ranks, rank, even_batches=even))

    return load


@given(st.integers(1, 60), st.integers(1, 7), st.integers(1, 5))
def test_torchs_sampler_repeats_what_fills_up_the_ranks(samples: int, size: int, ranks: int) -> None:
    found = read_all(distributed, samples, size, ranks)
    assert found.surplus == -samples % ranks
    assert (len(found.missing), found.even) == (0, True)


@given(st.integers(1, 60), st.integers(1, 7), st.integers(1, 5))
def test_torchs_sampler_that_drops_misses_what_fills_no_rank(samples: int, size: int, ranks: int) -> None:
    found = read_all(dropping, samples, size, ranks)
    assert len(found.missing) == samples % ranks
    assert (found.surplus, found.even) == (0, True)


@given(st.integers(0, 60), st.integers(1, 7), st.integers(1, 5))
def test_flowscheds_sampler_is_exact(samples: int, size: int, ranks: int) -> None:
    assert read_all(ours, samples, size, ranks).exact


@pytest.mark.parametrize(
    ("samples", "rows"), [(5, 64), (1021, 1024), (1024, 1024), (1000, 1024), (7, 64), (3, 64)]
)
def test_accelerates_even_batches_repeat_until_all_are_full(samples: int, rows: int) -> None:
    found = read_all(accelerated(even=True), samples, 16, 4)
    assert (found.rows, found.surplus, len(found.missing), found.even) == (rows, rows - samples, 0, True)


def test_accelerates_uneven_batches_are_exact_and_leave_ranks_empty() -> None:
    found = read_all(accelerated(even=False), 5, 16, 4)
    assert (found.exact, found.even) == (True, False)
    assert [rank.batches for rank in found.ranks] == [1, 0, 0, 0]


def test_a_loader_without_a_sampler_gives_everything_to_each_rank() -> None:
    found = read_all(lambda data, size, rank, ranks: stock(data, batch_size=size), 21, 4, 3)  # noqa: ARG005
    assert found.everything
    assert found.times.tolist() == [3] * 21


def test_one_id_a_row_and_lists_of_ids_are_read_without_batches() -> None:
    single = stock(Refusing(5), batch_size=None)
    assert read_loader(single, Way.IDS).keys.tolist() == [0, 1, 2, 3, 4]
    lists = stock(Refusing(5), sampler=BatchSampler(SequentialSampler(range(5)), 2, False), batch_size=None)
    reading = read_loader(lists, Way.IDS)
    assert (reading.keys.tolist(), reading.sizes.tolist()) == ([0, 1, 2, 3, 4], [2, 2, 1])


def test_a_sampler_alone_is_read() -> None:
    reading = read_loader(ShardedBatchSampler(10, 2, rank=1, ranks=3), Way.IDS)
    assert (reading.keys.tolist(), reading.sizes.tolist(), reading.samples) == ([2, 3, 8], [2, 1], 10)
    reading = read_loader(DistributedSampler(Refusing(5), 2, 0, shuffle=False), Way.IDS)
    assert (reading.keys.tolist(), reading.samples) == ([0, 2, 4], 5)


def test_the_loader_is_as_it_was_afterwards() -> None:
    data = torch.arange(10)
    loader = stock(data, batch_size=4, num_workers=1, persistent_workers=True, collate_fn=torch.stack)
    before = [batch.tolist() for batch in loader]
    state = dict(vars(loader))
    assert read_loader(loader, Way.IDS).keys.tolist() == list(range(10))
    assert {**vars(loader), "_iterator": None} == {**state, "_iterator": None}
    assert [batch.tolist() for batch in loader] == before


def test_the_loader_is_as_it_was_when_reading_failed() -> None:
    data = [1, 2]
    loader = stock(data, batch_sampler=[[0], ["x"]])
    with pytest.raises((TypeError, ValueError)):
        read_loader(loader, Way.IDS)
    assert vars(loader)["dataset"] is data


@pytest.mark.parametrize("workers", [0, 2])
def test_streams_are_told_apart_by_what_they_hold_before_they_are_padded(workers: int) -> None:
    loader = stock(Squares(7), batch_size=3, num_workers=workers)  # collating would fail: lengths differ
    with pytest.raises(TypeError):
        read_loader(loader, Way.IDS)
    reading = read_loader(loader, Way.DIGESTS)
    distinct, times = np.unique(reading.keys, axis=0, return_counts=True)
    assert len(distinct) == 7
    assert times.tolist() == [max(1, workers)] * 7  # each worker reads a stream that does not know of workers


def test_any_iterable_of_batches_is_read_by_its_rows() -> None:
    batches = [{"x": torch.arange(3), "y": ["a", "b", "c"]}, {"x": torch.arange(1), "y": ["a"]}]
    reading = read_loader(batches, Way.ROWS)
    assert reading.sizes.tolist() == [3, 1]
    assert len(np.unique(reading.keys, axis=0)) == 3
    with pytest.raises(TypeError, match="whose rows are not known"):
        read_loader([object()], Way.ROWS)


def test_a_loader_that_goes_on_for_ever_is_given_up() -> None:
    def forever() -> Iterator[list[int]]:
        while True:
            yield [0, 1]

    class Endless(BatchSampler):
        def __iter__(self) -> Iterator[list[int]]:
            return forever()

    loader = stock(Refusing(2), batch_sampler=Endless(SequentialSampler(range(2)), 2, False))
    reading = read_loader(loader, Way.IDS)
    assert not reading.ends
    assert len(reading.keys) > 8


def test_rows_that_pad_by_name_are_known_as_such() -> None:
    data = torch.arange(7)
    loaders: list[DataLoader[Any]] = [
        ShardedLoader(data, 2, "even", tail="pad", rank=1, ranks=2),
        stock(data, batch_sampler=ShardedBatchSampler(data, 2, "even", tail="pad", rank=1, ranks=2)),
    ]
    for loader in loaders:
        reading = read_loader(loader, Way.IDS)
        assert (reading.keys.tolist(), reading.real.tolist()) == ([2, 3, 6, 0], [True, True, True, False])


def test_a_local_loader_has_samples_of_its_own() -> None:
    assert read_loader(ShardedLoader(torch.arange(4), 2, "local", rank=1, ranks=2), Way.IDS).own
    assert not read_loader(ShardedLoader(torch.arange(4), 2, rank=1, ranks=2), Way.IDS).own


def test_probes_tell_data_sets_apart_and_leave_out_what_changes_each_time() -> None:
    class Random:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int) -> Any:
            return torch.rand(3) if index else 0

    assert probe(stock(torch.arange(3)), [0, 2]) != probe(stock(torch.arange(3) + 1), [0, 2])
    assert probe(stock(torch.arange(3)), [0, 2]) == probe(stock(torch.arange(3)), [0, 2])
    steady, random = probe(stock(Random()), [0, 1])
    assert steady is not None
    assert random is None
    assert probe(stock(Refusing(2)), [0]) == [None]


def test_digests_tell_kinds_and_shapes_apart() -> None:
    values = [1, 1.0, True, "1", b"1", [1], {"a": 1}, {"b": 1}, None, ["a", "bc"], ["ab", "c"], [[1], 2]]
    values += [torch.tensor(1), torch.tensor([1]), np.float32(1), torch.tensor(2.0, dtype=torch.bfloat16)]
    seen = {tuple(digest(value).tolist()) for value in values}
    assert len(seen) == len(values)
    with pytest.raises(TypeError, match="cannot be told from others"):
        digest(lambda: 0)


def test_rows_of_batches_are_found_in_every_usual_form() -> None:
    columns = {"x": torch.zeros(2, 3), "y": {"z": np.arange(2)}, "t": ["a", "b"]}
    assert [row["t"] for row in rows_of(columns)] == ["a", "b"]
    assert len(list(rows_of((torch.zeros(4, 1), torch.zeros(4))))) == 4
    assert len(list(rows_of([{"x": 1}, {"x": 2}, {"x": 3}]))) == 3
    with pytest.raises(TypeError, match="a single number"):
        list(rows_of(torch.tensor(3)))


def test_loaders_are_called_by_what_deals_their_samples() -> None:
    data = torch.arange(5)
    assert say_kind(distributed(data, 2, 0, 2)) == "DataLoader with DistributedSampler"
    assert say_kind(ours(data, 2, 0, 2)) == "DataLoader with ShardedBatchSampler"
    assert say_kind([1, 2]) == "list"
    assert count_samples(distributed(data, 2, 0, 2)) == 5
    assert count_samples([1, 2]) is None
