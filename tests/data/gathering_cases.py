"""What several ranks gather in tests, case by case; see ``test_gathering.py`` for what must come of it."""

from __future__ import annotations

import itertools
import warnings
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader

from flowsched.data import GatherError, ShardedBatchSampler, gather, receiving, weighted_mean
from flowsched.sharding import Deal, Sharding
from tests.data.ranks import Refusal


class Loader:
    """Something with a deal, and no more."""

    def __init__(self, samples: int, ranks: int, epoch: int = 0, seen: int = 0, **options: Any) -> None:
        batch_size = options.pop("batch_size", 4)
        self.deal = Deal(Sharding(samples, ranks, batch_size, **options), epoch, seen)

    def ids(self, rank: int, steps: int | None = None) -> list[int]:
        """Ids of the rows of a rank's batches, those that pad included, as a loop sees them."""
        return list(itertools.chain(*itertools.islice(self.deal.lists(rank), steps)))


DEALS: dict[str, dict[str, Any]] = {
    "exact": {},
    "shuffled": {"shuffle": True},
    "even": {"mode": "even"},
    "padded": {"mode": "even", "tail": "pad"},
    "dropped": {"mode": "even", "tail": "drop", "shuffle": True},
    "grouped": {"group": 2, "shuffle": True},
    "half seen": {"seen": 8, "shuffle": True},
    "balanced": {"mode": "even", "lengths": True, "shuffle": True},
    "padded and balanced": {"mode": "even", "tail": "pad", "lengths": True},
}


def quantize(value: torch.Tensor) -> torch.Tensor:
    """Return a quantized tensor, which torch warns about since it will be gone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.quantize_per_tensor(value, 0.5, 0, torch.quint8)


SIZES = (0, 1, 3, 16, 50, 102)


def make_loader(name: str, samples: int, ranks: int) -> Loader:
    """Return the loader of one of the deals."""
    options = dict(DEALS[name])
    samples -= samples % options.get("group", 1)
    if options.get("lengths"):
        options["lengths"] = np.arange(samples) * 7 % 11
    options["seen"] = min(options.get("seen", 0), samples)
    return Loader(samples, ranks, **options)


def _every_deal(rank: int, ranks: int) -> dict[tuple[str, int], Any]:
    found = {}
    for name, samples in itertools.product(DEALS, SIZES):
        loader = make_loader(name, samples, ranks)
        ids = loader.ids(rank)
        rows = {"id": torch.tensor(ids, dtype=torch.int64), "text": [f"sample {one}" for one in ids]}
        found[name, samples] = gather(rows if ids else None, loader)
    return found


def _kinds(rank: int, ranks: int) -> dict[str, Any]:
    loader = Loader(7, ranks, batch_size=2, shuffle=True)
    ids = loader.ids(rank)
    at = torch.tensor(ids, dtype=torch.int64)
    rows = {
        "bool": at % 2 == 0,
        "bfloat16": at.to(torch.bfloat16)[:, None] * torch.ones(3),
        "complex": torch.complex(at.double(), -at.double()).conj(),
        "float8": at.to(torch.float8_e4m3fn),
        "int64": at * 2**40,
        "strided": (at[:, None] * torch.ones(1, 6))[:, ::2],
        "no elements": torch.empty(len(ids), 0),
        "gradient": (at.float() * 2).requires_grad_(),
        "numpy": np.array(ids, dtype=np.float16).reshape(-1, 1),
        "read-only": np.broadcast_to(np.float32(1), (len(ids), 2)),
        "text": np.array(["x" * one for one in ids], dtype=f"<U{max(ids, default=0) + 1}"),
        "time": np.array(ids, dtype="datetime64[D]"),
        "objects": np.array([{"id": one} for one in ids] + [{}], dtype=object)[: len(ids)],
        "ragged": [torch.full((one % 3, 2), one, dtype=torch.int16) for one in ids],
        "one numbers": [torch.tensor(float(one)) for one in ids],
        "unlike": [torch.zeros(one) if one % 2 else {"t": torch.ones(one)[:1]} for one in ids],
        "strings": [f"é{one}" for one in ids],
        "nested": {"inner": {"id": at.to(torch.uint8)}, "nothing": None},
        "nobody": None,
    }
    return gather(rows, loader)  # type: ignore[no-any-return]


def _in_part(rank: int, ranks: int) -> Any:
    loader = Loader(100, ranks, shuffle=True)
    return [gather(loader.ids(rank, steps), loader) for steps in (1, 3)]


def _without_loader(rank: int, _: int) -> Any:
    return gather(torch.full((rank, 2), rank)), gather([rank] * (2 - rank % 2)), gather(None), gather([])


def _nobody_has_rows(rank: int, _: int) -> Any:
    return gather(torch.empty(0, 5, dtype=torch.int32) if rank == 0 else None)


def _local(rank: int, ranks: int) -> Any:
    loader = Loader(rank + 2, ranks, mode="local", shuffle=True)
    return gather([(rank, one) for one in loader.ids(rank)], loader)


def _to_one(rank: int, ranks: int) -> Any:
    loader = Loader(10, ranks, batch_size=2)
    rows = {"id": torch.tensor(loader.ids(rank)), "text": list(map(str, loader.ids(rank)))}
    return gather(rows, loader, to=ranks - 1)


def _some_ranks(rank: int, ranks: int) -> Any:
    if ranks < 3:
        return None
    group = dist.new_group([0, 2])  # all ranks must call it
    if rank not in (0, 2):
        return gather([rank], process_group=group)
    own = rank // 2
    loader = Loader(9, 2, batch_size=2, shuffle=True)
    sampler = ShardedBatchSampler(9, 2, shuffle=True, process_group=group)
    assert list(sampler) == list(loader.deal.lists(own))
    rows = [one for batch in DataLoader(range(9), batch_sampler=sampler) for one in batch.tolist()]  # type: ignore[arg-type]
    return gather(rows, sampler, process_group=group), gather(torch.tensor([own]), process_group=group, to=1)


def _padding(rank: int, ranks: int) -> Any:
    loader = Loader(ranks, ranks, batch_size=1)
    short = torch.full((1, rank + 1), rank)
    rows = {"ids": short, "mask": short.bool(), "scores": short.numpy().astype(np.float32)}
    fill: Any = {"ids": np.int8(-1) if rank else -1, "mask": False, "scores": np.float32("nan")}
    return gather(rows, loader, padding=fill)


def _many_columns(rank: int, _: int) -> Any:
    return gather({f"a column with a long name, number {at}": torch.tensor([rank + at]) for at in range(100)})


def _lent(*_: int) -> Any:
    rows = torch.arange(4.0)
    everything = gather(rows)
    everything += 1
    listed = gather(list(torch.zeros(1000, 1))[:1])
    return rows, listed[0].untyped_storage().nbytes()


def _collectives(rank: int, ranks: int) -> int:
    """Return how many times ranks waited for all others."""
    loader = Loader(50, ranks, shuffle=True)
    ids = loader.ids(rank)
    rows = {
        "id": torch.tensor(ids),
        "text": [str(one) for one in ids],
        "score": np.array(ids, dtype=np.float32),
    }
    with patch.object(dist, "all_gather", wraps=dist.all_gather) as calls:
        gather(rows, loader)
    return int(calls.call_count)


def _in_turns(rank: int, ranks: int) -> Any:
    """Rows that do not fit at once into what is sent at a time, on some ranks in more turns than on others."""
    loader = Loader(21, ranks, shuffle=True)
    ids = loader.ids(rank)
    rows = {"id": torch.tensor(ids), "wide": np.array(ids)[:, None] * np.ones((1, 1 + rank % 2), np.int64)}
    with patch.object(receiving, "_AT_ONCE", 40):
        return (
            gather(rows, loader, padding=-1),
            gather(torch.full((7 * rank, 2), rank)),
            gather(torch.tensor(ids), loader, to=0),
        )


def _wrong_rows(rank: int, ranks: int) -> Any:
    loader = Loader(4 * ranks, ranks, batch_size=2)
    return gather([0] * (5 if rank == ranks - 1 else 4), loader)


def _batches_for_rows(_: int, ranks: int) -> Any:
    return gather([torch.zeros(2)] * 3, Loader(6 * ranks, ranks, batch_size=2))


def _unlike(first: Any, last: Any, **options: Any) -> Any:
    return lambda rank, ranks: gather(last if rank == ranks - 1 else first, **options)


def _other_epoch(rank: int, ranks: int) -> Any:
    loader = Loader(2 * ranks, ranks, epoch=rank, shuffle=True)
    return gather([0, 0], loader)


def _unlike_arguments(rank: int, _: int) -> Any:
    return gather([0], to=rank)


def _local_too_few(rank: int, ranks: int) -> Any:
    return gather([0] * 3, Loader(3 if rank else 4, ranks, mode="local"))


def _unlike_quantized(rank: int, ranks: int) -> Any:
    given = torch.ones(2, 3)
    return gather(quantize(given) if rank == ranks - 1 else given)


def _padding_overflows(rank: int, _: int) -> Any:
    return gather(torch.ones(2, rank + 1, dtype=torch.float16), padding=1e6, to=0)


class Unreadable:
    """Pickles, and raises when it is unpickled."""

    def __reduce__(self) -> Any:
        return eval, ("1/0",)


def _unreadable(rank: int, ranks: int) -> Any:
    last = rank == ranks - 1
    return gather(
        {"text": ["a", Unreadable() if last else "b"], "id": torch.full((2, 3), rank), "more": [1, 2]}
    )


def _unreadable_to_one(rank: int, _: int) -> Any:
    """Return what came of it, and of the next call."""
    try:
        found = gather({"text": [Unreadable() if rank == 0 else "b"], "more": [rank]}, to=0)
    except GatherError as error:
        found = Refusal(error)
    return found, gather([rank])


def _other_call(rank: int, ranks: int) -> Any:
    return weighted_mean({"loss": [1.0] * rank}) if rank == ranks - 1 else gather([0])


def _other_rank(rank: int, ranks: int) -> Any:
    sampler = ShardedBatchSampler(4 * ranks, 2, rank=ranks - 1 - rank, ranks=ranks)
    loader: Any = DataLoader(range(4 * ranks), batch_sampler=sampler)  # type: ignore[arg-type]
    return gather(torch.cat(list(loader)), loader)


def _recovers(rank: int, _: int) -> Any:
    """What is refused leaves nothing behind that the next call would meet."""
    with pytest.raises(GatherError):
        gather([0, (one for one in "ab")] if rank == 0 else [0])
    return gather([rank])


CASES: dict[str, Any] = {
    "every deal": _every_deal,
    "kinds": _kinds,
    "in part": _in_part,
    "without loader": _without_loader,
    "nobody has rows": _nobody_has_rows,
    "local": _local,
    "to one": _to_one,
    "some ranks": _some_ranks,
    "padding": _padding,
    "many columns": _many_columns,
    "lent": _lent,
    "collectives": _collectives,
    "in turns": _in_turns,
    "wrong rows": _wrong_rows,
    "batches for rows": _batches_for_rows,
    "other shape": _unlike(torch.zeros(2, 3), torch.zeros(2, 4)),
    "other axes": _unlike(torch.zeros(2, 3), torch.zeros(2), padding=0),
    "other dtype": _unlike({"x": torch.zeros(2)}, {"x": torch.zeros(2).double()}),
    "other kind": _unlike(torch.zeros(2), [0.0, 0.0]),
    "other keys": _unlike({"x": [0], "y": [0]}, {"x": [0], "z": [0]}),
    "bad padding": _unlike(torch.zeros(2, 3, dtype=torch.int32), None, padding=0.5),
    "padding overflows": _padding_overflows,
    "no padding": _unlike([0], [0], padding="none"),
    "unsendable": _unlike([0], [0, (one for one in "ab")]),
    "no column": _unlike([0], (0, 1)),
    "quantized": _unlike_quantized,
    "no deal": _unlike([0], [0], loader="loader"),
    "other ranks": _unlike([0], [0], loader=Loader(40, 9)),
    "no such rank": _unlike([0], [0], to=4),
    "other epoch": _other_epoch,
    "unlike arguments": _unlike_arguments,
    "local, too few": _local_too_few,
    "other rank": _other_rank,
    "unreadable": _unreadable,
    "unreadable, to one": _unreadable_to_one,
    "other call": _other_call,
    "recovers": _recovers,
}
