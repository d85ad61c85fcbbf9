"""Which samples one process gets of a loader: read by their ids where it has some, else by what they hold."""

from __future__ import annotations

import time
from array import array
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Sampler

from flowsched.data.digests import digest, digest_samples
from flowsched.data.stand_ins import (
    attributes,
    find_dataset,
    has_numbers,
    holders,
    yielding_digests,
    yielding_ids,
)
from flowsched.sharding import Deal, Mode

_ENDLESS = 4  # times the samples there are: a loader that gives more of them to one rank goes on for ever
_APART = 1_024  # arrays of keys that are kept apart


class Way(StrEnum):
    """How samples are told apart.

    Attributes:
        IDS: by their ids, while a data set of numbers stands in for the loader's own. Nothing is loaded.
        DIGESTS: by what they hold, before the loader makes batches of them.
        ROWS: by what the rows of batches hold.
    """

    IDS = "ids"
    DIGESTS = "digests"
    ROWS = "rows"


@dataclass(frozen=True, eq=False)
class Reading:
    """What one rank has read.

    Attributes:
        way: how samples are told apart.
        keys: (rows,) ids, or (rows, 2) digests.
        sizes: (batches,) rows of each batch.
        real: (rows,) False for rows that are there to pad and carry no weight.
        samples: how many samples the data set has, as this rank sees it; None where it does not say.
        own: whether the samples are this rank's own, so that ids of other ranks mean other samples.
        ends: False where reading was given up, as the loader does not seem to end.
        kind: what the loader is, to say it.
    """

    way: Way
    keys: NDArray[np.int64]
    sizes: NDArray[np.int64]
    real: NDArray[np.bool_]
    samples: int | None
    own: bool
    ends: bool
    kind: str


def read_loader(loader: Any, way: Way, given: int | None = None, patience: float | None = None) -> Reading:
    """Read a loader from its beginning to its end, and leave it as it was but for its epoch.

    Args:
        loader: what to read.
        way: how samples are told apart.
        given: how many samples there are, where the loader does not say.
        patience: seconds after which reading is given up, where nobody says how many samples there are.

    Raises:
        TypeError: it cannot be read in this way.
        Exception: whatever the loader raises.
    """
    samples = count_samples(loader)
    known = given if samples is None else samples
    most = inf if known is None else _ENDLESS * known + 1_000
    until = inf if known is not None or patience is None else time.monotonic() + patience
    joined: list[NDArray[np.int64]] = [np.empty(0 if way == Way.IDS else (0, 2), dtype=np.int64)]
    keys: list[NDArray[np.int64]] = []
    counts, rows, ends = array("q"), 0, True
    with _open(loader, way):
        for batch in loader:
            keys.append(_keys_of(batch, way))
            counts.append(len(keys[-1]))
            rows += counts[-1]
            if max(rows, len(counts)) > most or time.monotonic() > until:
                ends = False
                break
            if len(keys) > _APART:  # small arrays take more than what they hold
                joined.append(np.concatenate(keys))
                keys = []
    sizes = np.array(counts, dtype=np.int64)
    deal, rank = _find_deal(loader)
    return Reading(
        way,
        np.concatenate([*joined, *keys]),
        sizes,
        _find_real(deal, rank, sizes),
        samples,
        own=deal is not None and deal.sharding.mode == Mode.LOCAL,
        ends=ends,
        kind=say_kind(loader),
    )


def count_samples(loader: Any) -> int | None:
    """Return how many samples there are behind a loader, on all ranks; None if it does not say."""
    deal, _ = _find_deal(loader)
    if deal is not None:
        return deal.sharding.samples
    dataset = find_dataset(loader)
    return len(dataset) if has_numbers(dataset) else None


def probe(loader: Any, ids: list[int]) -> list[tuple[int, int] | None]:
    """Return what the samples with these ids hold on this rank; None for those that differ each time or fail."""
    dataset = find_dataset(loader)
    return [_probe_one(dataset, one) for one in ids]


def say_kind(loader: Any) -> str:
    """Return what a loader is called, with what deals samples within it.

    >>> from torch.utils.data import DataLoader
    >>> say_kind(DataLoader([1, 2]))
    'DataLoader with SequentialSampler'
    """
    name = type(loader).__name__
    batches = getattr(loader, "batch_sampler", None)
    inner = batches if type(batches).__name__ != "BatchSampler" else getattr(loader, "sampler", None)
    inner = inner if inner is not None else getattr(loader, "data_sampler", None)
    if inner is None:
        dataset = find_dataset(loader)
        return name if dataset is None else f"{name} over {type(dataset).__name__}"
    return f"{name} with {type(inner).__name__.lstrip('_')}"


def _open(loader: Any, way: Way) -> AbstractContextManager[None]:
    if way == Way.IDS:
        return nullcontext() if isinstance(loader, Sampler) else yielding_ids(loader)
    return yielding_digests(loader) if way == Way.DIGESTS else nullcontext()


def _keys_of(batch: Any, way: Way) -> NDArray[np.int64]:
    if way == Way.ROWS:
        batch = digest_samples(batch)
    found = batch.detach().cpu().numpy() if isinstance(batch, torch.Tensor) else np.asarray(batch, np.int64)
    return found.reshape(-1) if way == Way.IDS else found.reshape(-1, 2)


def _find_deal(loader: Any) -> tuple[Deal | None, int]:
    """Return the epoch of flowsched's that a loader hands out, and this process's rank in it, if there is one."""
    for holder in holders(loader):
        for owner in (
            holder,
            *(attributes(holder).get(name) for name in ("batch_sampler", "dataset", "_batches")),
        ):
            try:
                deal, rank = getattr(owner, "deal", None), getattr(owner, "rank", None)
            except TypeError:  # a stream of unknown length has none
                continue
            if isinstance(deal, Deal) and isinstance(rank, int):
                return deal, rank
    return None, 0


def _find_real(deal: Deal | None, rank: int, sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which rows count. Only rules of flowsched's say of rows that they pad."""
    everything = np.full(int(sizes.sum()), True)
    if deal is None or not len(deal.padding) or deal.batches(rank) != len(sizes):
        return everything
    real = np.concatenate([deal.real(rank, step) for step in range(len(sizes))])
    return real if len(real) == len(everything) else everything


def _probe_one(dataset: Any, index: int) -> tuple[int, int] | None:
    try:
        first, second = (tuple(digest(dataset[index]).tolist()) for _ in range(2))
    except Exception:  # noqa: BLE001 (a data set may raise anything, and then tells nothing apart)
        return None
    return first if first == second else None
