"""Where the rows of each rank belong among those of all, as the loader dealt them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from flowsched.data.packing import Rows
from flowsched.errors import Problem
from flowsched.sharding import Deal, Mode, ShardingError

Places: TypeAlias = list["slice | Rows"]
"""For each rank, which of all rows its rows become: a range of them, or one number for each."""

_HOLDERS = ("batch_sampler", "sampler", "dataset", "base_dataloader")


def find_deal(loader: Any) -> tuple[Deal, int | None]:
    """Return how a loader deals its samples, and to which rank: as it says, or what a ``DataLoader`` reads from.

    The rank is None where what has the ``deal`` is of no rank.

    Raises:
        ShardingError: it has none.
    """
    for holder in (loader, *(getattr(loader, name, None) for name in _HOLDERS)):
        deal = holder if isinstance(holder, Deal) else getattr(holder, "deal", None)
        if isinstance(deal, Deal):
            rank = getattr(holder, "rank", None)
            return deal, rank if isinstance(rank, int) else None
    problem = Problem(
        "no-deal",
        "loader",
        f"a {type(loader).__name__} does not know which samples each rank has",
        "Give a ShardedLoader, or a DataLoader over a ShardedBatchSampler, or none for rows rank after rank",
    )
    raise ShardingError("gather", [problem])


def describe(deal: Deal | None) -> dict[str, Any]:
    """Return what must be the same on all ranks."""
    if deal is None:
        return {"loader": None}
    given = deal.sharding
    if given.mode == Mode.LOCAL:
        return {"loader": "a loader", "mode": "local"}
    lengths = None if given.lengths is None else zlib.crc32(np.asarray(given.lengths).tobytes())
    return {
        "loader": "a loader",
        "mode": str(given.mode),
        "samples": int(given.samples),
        "ranks": int(given.ranks),
        "batch_size": int(given.batch_size),
        "group": int(given.group),
        "shuffle": bool(given.shuffle),
        "seed": int(given.seed),
        "tail": str(given.tail),
        "lengths": lengths,
        "epoch": int(deal.epoch),
        "seen": int(deal.seen),
    }


def keep_own(deal: Deal | None, rank: int, rows: int) -> Rows | None:
    """Return which of this rank's rows it sends, in which order; None for all of them, as they are.

    Rows that pad stay here. Where the samples are this rank's own, only it knows their order.
    """
    if deal is None:
        return None
    if deal.sharding.mode == Mode.LOCAL:
        ids = deal.ids(rank)[:rows]
        return np.argsort(ids, kind="stable") if deal.sharding.shuffle else None
    padding = _count_padding(deal, rank)
    last = int(deal.rows(rank).sum())
    if not padding or rows != last:
        return None
    before = last - len(deal.real(rank, deal.steps - 1))
    return np.concatenate([np.arange(before), before + np.flatnonzero(deal.real(rank, deal.steps - 1))])


def count_batches(loader: Any) -> int | None:
    """Return how many batches of its epoch a loader has yielded; None where it does not know."""
    found = getattr(loader, "yielded", None)
    return found if isinstance(found, int) else None


def check_own(deal: Deal | None, rank: int, rows: int, batches: int | None) -> Iterator[Problem]:
    """Yield what is wrong with the number of rows where only this rank knows how many there should be.

    Args:
        deal: how samples are dealt.
        rank: this one.
        rows: how many it has.
        batches: how many batches its loader has yielded, where that is known.
    """
    if deal is None:
        return
    ends = _ends(deal, rank)
    if batches is not None:
        if rows != ends[batches]:
            yield _wrong(rank, rows, ends, batches, deal)
    elif deal.sharding.mode == Mode.LOCAL and rows not in ends:
        yield _wrong(rank, rows, ends, deal.steps, deal)


def find_wrong_rows(deal: Deal, counts: Sequence[int]) -> Iterator[Problem]:
    """Yield for each rank that has other rows than of the batches that most ranks have been through.

    Args:
        deal: the same on all ranks.
        counts: (ranks,) how many rows each has, those that pad included.
    """
    ends = [_ends(deal, rank) for rank in range(len(counts))]
    tried = {deal.steps, *(int(np.searchsorted(own, count)) for own, count in zip(ends, counts, strict=True))}
    fits = {
        steps: sum(int(own[steps]) == count for own, count in zip(ends, counts, strict=True))
        for steps in tried
        if steps <= deal.steps
    }
    steps = max(fits, key=lambda step: (fits[step], step))
    for rank, (own, count) in enumerate(zip(ends, counts, strict=True)):
        if own[steps] != count:
            yield _wrong(rank, count, own, steps, deal)


def place(deal: Deal | None, counts: Sequence[int]) -> tuple[list[int], Places]:
    """Return how many rows each rank sends, and where they belong among all.

    Args:
        deal: the same on all ranks; where there is none, or samples are each rank's own, rows lie rank after rank.
        counts: (ranks,) how many rows each has, those that pad included, and right.
    """
    if deal is None or deal.sharding.mode == Mode.LOCAL:
        ends = np.cumsum(counts, dtype=np.int64).tolist()
        return list(counts), [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
    ids = [own[:count] for own, count in zip(deal.ids_of(range(len(counts))), counts, strict=True)]
    rows = sum(map(len, ids))
    there = np.zeros(deal.sharding.samples, dtype=np.bool_)
    for own in ids:
        there[own] = True
    if not there[:rows].all():
        place_of = np.cumsum(there) - 1
        ids = [place_of[own] for own in ids]
    return [len(own) for own in ids], [_as_range(own) for own in ids]


def _as_range(places: Rows) -> slice | Rows:
    start = int(places[0]) if len(places) else 0
    in_row = np.array_equal(places, np.arange(start, start + len(places)))
    return slice(start, start + len(places)) if in_row else places


def _ends(deal: Deal, rank: int) -> Rows:
    """Return (steps + 1,) how many rows a rank has after each step, and before the first."""
    sizes = np.zeros(deal.steps + 1, dtype=np.int64)
    own = deal.rows(rank)
    sizes[1 : 1 + len(own)] = own
    return np.cumsum(sizes)


def _count_padding(deal: Deal, rank: int) -> int:
    return int(np.count_nonzero(~deal.real(rank, deal.steps - 1))) if len(deal.padding) else 0


def _wrong(rank: int, rows: int, ends: Rows, steps: int, deal: Deal) -> Problem:
    whole = "the epoch" if not deal.seen else "what is left of the epoch"
    every = "the only step" if deal.steps == 1 else f"all {deal.steps} steps"
    part = every if steps == deal.steps else f"{steps} of the {deal.steps} steps"
    mend = "Give one row for each sample of its batches so far, in the order in which they came"
    if len(deal.padding):
        mend += ", those that pad included"
    if rows != ends[steps] and rows == np.count_nonzero(np.diff(ends[: steps + 1])):
        mend = f"{rows} is the number of its batches: join their rows first, as torch.cat does"
    return Problem(
        "wrong-rows",
        f"rank {rank}",
        f"it has {rows} rows, and {ends[steps]} samples are dealt to it in {part} of {whole}",
        mend,
    )
