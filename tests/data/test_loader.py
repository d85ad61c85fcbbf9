"""The loader yields this rank's rows, knows which they are, and resumes whatever its workers hold ready."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from flowsched.data import ShardedDataset, ShardedLoader
from flowsched.sharding import ShardingError
from tests.data.sizes import Sizes, Stream, sizes


def make(sizes: Sizes, **options: Any) -> list[ShardedLoader]:
    """The loaders of all ranks, over data whose samples are ten times their ids."""
    values = torch.arange(sizes.samples) * 10
    return [ShardedLoader(values, **sizes.of(rank), **options) for rank in range(sizes.ranks)]


@settings(deadline=None)
@given(sizes())
def test_the_batch_last_yielded_is_described(sizes: Sizes) -> None:
    for loader in make(sizes):
        count, weights = 0, loader.weights
        for step, batch in enumerate(loader):
            assert batch.tolist() == (loader.ids * 10).tolist()
            assert loader.real.tolist() == [True] * len(batch)
            assert loader.weight == weights[step]
            count += 1
        assert count == len(loader)


@settings(deadline=None)
@given(sizes(modes=("even",)))
def test_ranks_take_part_in_each_step_and_weights_make_the_mean_over_rows(sizes: Sizes) -> None:
    values = torch.arange(sizes.samples, dtype=torch.float64)
    loaders = [ShardedLoader(values, **sizes.of(rank)) for rank in range(sizes.ranks)]
    for batches in zip(*loaders, strict=True):
        sums = [
            loader.weight * (float(rows.mean()) if len(rows) else 0.0)
            for rows, loader in zip(batches, loaders, strict=True)
        ]
        assert sum(sums) / sizes.ranks == pytest.approx(float(torch.cat(batches).mean()))


def test_rows_that_pad_are_told() -> None:
    loaders = [ShardedLoader(range(5), 2, "even", tail="pad", rank=rank, ranks=2) for rank in range(2)]
    rows = [[(batch.tolist(), loader.real.tolist()) for batch in loader] for loader in loaders]
    assert rows[0] == [([0, 1], [True, True]), ([4, 0], [True, False])]
    assert rows[1] == [([2, 3], [True, True]), ([1, 2], [False, False])]
    assert loaders[1].weight == 0
    assert loaders[1].deal.padding.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_workers": 2},
        {"num_workers": 2, "persistent_workers": True, "prefetch_factor": 4},
    ],
)
def test_rows_and_states_are_the_same_with_any_workers(options: dict[str, Any]) -> None:
    given_ = Sizes(61, 3, 4, "exact", 1, True, 5, None)
    loader = make(given_, **options)[1]
    for epoch in range(2):
        loader.set_epoch(epoch)
        assert [batch.tolist() for batch in loader] == [
            [10 * one for one in batch] for batch in loader.deal.lists(1)
        ]
    seen = []
    for batch in islice(loader, 2):
        seen += batch.tolist()
        assert loader.state_dict()["seen"] == len(seen) * 3
    loader.load_state_dict(loader.state_dict())
    rest = [one for batch in loader for one in batch.tolist()]
    assert seen + rest == [one for batch in loader for one in batch.tolist()]


def test_a_break_after_loading_keeps_what_is_left_though_workers_had_taken_all() -> None:
    loader = ShardedLoader(range(8), 2, rank=0, ranks=1, num_workers=2)
    state = loader.state_dict(batches=2)
    loader.load_state_dict(state)
    for batch in loader:
        assert batch.tolist() == [4, 5]
        break
    assert [batch.tolist() for batch in loader] == [[4, 5], [6, 7]]
    assert loader.state_dict()["seen"] == 8
    assert len(list(loader)) == 4


@settings(deadline=None)
@given(sizes(), st.data())
def test_all_ranks_tell_the_same_state_after_the_same_step(sizes: Sizes, data: st.DataObject) -> None:
    loaders = make(sizes)
    full = min(loader.deal.batches(rank) for rank, loader in enumerate(loaders))
    done = data.draw(st.integers(0, full))
    for loader in loaders:
        list(islice(loader, done))
    assert len({str(loader.state_dict(done)) for loader in loaders}) == 1
    for loader in loaders:
        list(loader)
    states = [loader.state_dict() for loader in loaders]
    assert states == [states[0]] * len(states)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_rank_without_samples_in_a_step_has_a_batch_of_no_rows(workers: int) -> None:
    samples = [{"ids": torch.full((3,), one), "text": f"text {one}"} for one in range(2)]
    loaders = [
        ShardedLoader(samples, 4, "even", rank=rank, ranks=4, num_workers=workers) for rank in range(4)
    ]
    rows: list[dict[str, Any]] = [batch for loader in loaders for batch in loader]
    assert [tuple(batch["ids"].shape) for batch in rows] == [(1, 3), (1, 3), (0, 3), (0, 3)]
    assert [batch["text"] for batch in rows] == [["text 0"], ["text 1"], [], []]
    assert [loader.weight for loader in loaders] == [2.0, 2.0, 0.0, 0.0]
    layer = torch.nn.Linear(3, 1)
    (layer(rows[3]["ids"].float()).sum() * loaders[3].weight).backward()
    assert layer.weight.grad is not None
    assert float(layer.weight.grad.abs().sum()) == 0


def test_a_collate_function_of_the_users_makes_the_rows() -> None:
    def collate(samples: list[int]) -> dict[str, Tensor]:
        return {"double": torch.tensor(samples) * 2}

    loaders = [
        ShardedLoader([1, 2, 3], 1, "even", collate_fn=collate, rank=rank, ranks=4) for rank in range(4)
    ]
    assert [[batch["double"].tolist() for batch in loader] for loader in loaders] == [
        [[2]],
        [[4]],
        [[6]],
        [[]],
    ]


def test_batches_are_moved_to_a_device() -> None:
    data = TensorDataset(torch.arange(6), torch.arange(6))
    loader = ShardedLoader(data, 4, device="meta", rank=0, ranks=1)
    assert {column.device.type for batch in loader for column in batch} == {"meta"}


def test_launchers_read_the_size_of_batches() -> None:
    loader = ShardedLoader(range(10), 3, rank=0, ranks=2)
    assert loader.batch_size == loader.sampler.batch_size == 3
    assert loader.drop_last is False
    assert loader.sampler is loader.batch_sampler
    assert (loader.rank, loader.ranks) == (0, 2)


def test_nothing_is_described_before_the_first_batch() -> None:
    loader = ShardedLoader(range(10), 3, rank=0, ranks=2)
    for name in ("ids", "real", "weight"):
        with pytest.raises(ShardingError, match="no batch has been yielded yet"):
            getattr(loader, name)


@pytest.mark.parametrize(
    ("data", "options", "said"),
    [
        (range(9), {"drop_last": True}, r'drop_last: .*Leave it out; give mode="even", tail="drop"'),
        (range(9), {"sampler": [1, 2]}, "sampler: ShardedLoader deals samples itself"),
        (range(9), {"batch_sampler": [[1, 2]]}, "batch_sampler: ShardedLoader deals samples itself"),
        (range(9), {"num_workers": 1, "in_order": False}, "in_order: batches would come in another order"),
        (
            Stream(9),
            {},
            r"dataset: a Stream gives samples in its own order.*ShardedDataset\(...\), batch_size=None",
        ),
        (iter([1, 2]), {}, "a list_iterator gives samples in its own order"),
    ],
)
def test_what_would_deal_otherwise_is_refused(data: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ShardingError, match=said):
        ShardedLoader(data, 2, rank=0, ranks=1, **options)


def test_a_data_set_of_batches_is_not_made_into_batches_again() -> None:
    data = ShardedDataset(range(9), 2, rank=0, ranks=1)
    with pytest.raises(ShardingError, match="Give the DataLoader batch_size=None"):
        next(iter(DataLoader(data)))
