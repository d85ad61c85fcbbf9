"""What would deal a second time is refused with the mend, in the real functions of each library."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from flowsched.data import DoubleShardingError, ShardedBatchSampler, ShardedDataset, ShardedLoader
from tests.data.sizes import Stream

HERE: dict[str, Any] = {"rank": 1, "ranks": 4}


def stock_loader() -> DataLoader[int]:
    """Torch's loader with our sampler."""
    sampler = ShardedBatchSampler(23, 2, **HERE)
    return DataLoader(range(23), batch_sampler=sampler)  # type: ignore[arg-type]


def loader_of_data_set(data: Any = None) -> DataLoader[Any]:
    """Torch's loader of our data set."""
    return DataLoader(ShardedDataset(range(23) if data is None else data, 2, **HERE), batch_size=None)


@pytest.fixture
def prepare() -> Iterator[Callable[..., Any]]:
    """What accelerator.prepare calls for each loader, for as many processes as it is told."""
    library = pytest.importorskip("accelerate", reason="accelerate is not installed")
    from accelerate.data_loader import prepare_data_loader
    from accelerate.state import AcceleratorState, GradientState, PartialState

    library.Accelerator(cpu=True)
    yield prepare_data_loader
    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()


@pytest.mark.parametrize("make", [stock_loader, loader_of_data_set, lambda: loader_of_data_set(Stream(23))])
@pytest.mark.parametrize("options", [{}, {"even_batches": False}, {"split_batches": True}])
def test_accelerate_is_refused_when_it_prepares(
    prepare: Callable[..., Any], make: Callable[[], Any], options: dict[str, Any]
) -> None:
    if options.get("split_batches") and make is not stock_loader:
        pytest.skip("accelerate itself refuses to split batches of unknown size")
    with pytest.raises(
        DoubleShardingError, match=r"accelerat.* a second time .* flowsched\.data\.ShardedLoader"
    ):
        prepare(make(), num_processes=2, process_index=1, **options)


def test_accelerate_is_refused_when_it_would_dispatch(
    prepare: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from accelerate.state import PartialState

    with pytest.raises(DoubleShardingError, match=r"accelerator.prepare"):
        prepare(stock_loader(), num_processes=2, process_index=1, dispatch_batches=True, put_on_device=True)
    loader = prepare(loader_of_data_set(), num_processes=2, process_index=1, put_on_device=True)
    monkeypatch.setitem(PartialState._shared_state, "num_processes", 2)
    with pytest.raises(
        DoubleShardingError, match=r"DataLoaderDispatcher.*leave the DataLoader of this one out"
    ):
        next(iter(loader))


@pytest.mark.parametrize("make", [stock_loader, loader_of_data_set])
@pytest.mark.parametrize("options", [{}, {"put_on_device": True, "device": torch.device("cpu")}])
def test_accelerate_may_pass_batches_on_where_it_splits_nothing(
    prepare: Callable[..., Any], make: Callable[[], Any], options: dict[str, Any]
) -> None:
    expected = [batch.tolist() for batch in make()]
    prepared = prepare(make(), num_processes=1, process_index=0, **options)
    assert [batch.tolist() for batch in prepared] == expected


@pytest.mark.usefixtures("prepare")
def test_accelerators_hand_a_sharded_loader_back_as_it_is() -> None:
    from accelerate import Accelerator

    loader = ShardedLoader(range(23), 2, **HERE)
    accelerator = Accelerator(cpu=True)
    model = torch.nn.Linear(1, 1)
    prepared, _ = accelerator.prepare(loader, model)
    assert prepared is loader
    assert accelerator.prepare_data_loader(loader) is loader


@pytest.mark.usefixtures("prepare")
def test_accumulated_gradients_are_applied_at_the_end_of_a_sharded_loader() -> None:
    from accelerate import Accelerator
    from accelerate.state import GradientState

    GradientState._reset_state()
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=3)
    model = torch.nn.Linear(1, 1)
    loader = accelerator.prepare(ShardedLoader(range(10), 2, rank=0, ranks=1))
    for _ in range(2):
        applied = []
        for _ in loader:
            with accelerator.accumulate(model):
                applied.append(accelerator.sync_gradients)
        assert applied == [False, False, True, False, True]
    assert not accelerator.gradient_state.in_dataloader


@pytest.mark.usefixtures("prepare")
def test_accelerate_saves_and_loads_where_a_sharded_loader_stands(tmp_path: Path) -> None:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    loader = accelerator.prepare(ShardedLoader(range(10), 2, rank=0, ranks=1))
    for batch in loader:
        if batch.tolist() == [4, 5]:
            accelerator.save_state(str(tmp_path))
    accelerator.load_state(str(tmp_path))
    assert [batch.tolist() for batch in loader] == [[6, 7], [8, 9]]


@pytest.mark.usefixtures("prepare")
def test_accelerate_skips_the_first_batches_of_a_sharded_loader() -> None:
    from accelerate import skip_first_batches

    loader = ShardedLoader(range(10), 2, rank=0, ranks=1)
    assert [batch.tolist() for batch in skip_first_batches(loader, 3)] == [[6, 7], [8, 9]]


@pytest.mark.parametrize("make", [ShardedLoader, ShardedDataset])
def test_a_distributed_sampler_over_what_is_dealt_is_refused(make: Any) -> None:
    dealt = make(range(23), 2, **HERE)
    with pytest.raises(
        DoubleShardingError, match=r"torch \(DistributedSampler\).* Leave DistributedSampler out"
    ):
        DistributedSampler(dealt, num_replicas=2, rank=0)
    assert len(DistributedSampler(dealt, num_replicas=1, rank=0)) == 3


@pytest.mark.parametrize("local_rank", [0, -1])
def test_deepspeeds_loader_over_what_is_dealt_is_refused(local_rank: int) -> None:
    library = pytest.importorskip("deepspeed.runtime.dataloader", reason="deepspeed is not installed")
    for known in (True, False):
        data = ShardedDataset(range(23) if known else Stream(23), 2, **HERE)
        with pytest.raises(DoubleShardingError, match=r"Call deepspeed\.initialize without"):
            library.DeepSpeedDataLoader(
                dataset=data,
                batch_size=2,
                pin_memory=False,
                local_rank=local_rank,
                tput_timer=None,
                data_parallel_world_size=2,
                data_parallel_rank=0,
            )


def test_plain_use_is_never_refused() -> None:
    for loader in (stock_loader(), loader_of_data_set(), ShardedLoader(range(23), 2, **HERE)):
        assert len(loader) == len(list(loader)) == 3
    sampler = ShardedBatchSampler(23, 2, **HERE)
    assert (sampler.batch_size, len(sampler), hasattr(sampler, "sampler")) == (2, 3, False)
    assert not hasattr(ShardedLoader(range(23), 2, **HERE), "__getitem__")


def test_a_sampler_of_the_users_that_splits_other_data_may_call_ours_nearby() -> None:
    class Mine(DistributedSampler[Any]):
        def __init__(self, data: Any) -> None:
            self.ours = len(ShardedBatchSampler(23, 2, **HERE))
            super().__init__(data, num_replicas=2, rank=0)

    assert Mine(range(10)).ours == 3


def test_refusals_travel_between_processes() -> None:
    error = DoubleShardingError("ShardedLoader", "torch (DistributedSampler)", "Leave it out")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.mend) == (str(error), "Leave it out")
