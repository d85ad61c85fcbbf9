"""What ``flowsched shard`` shows of a sharding: how many samples each rank gets, which ones, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flowsched.inspect.align import align
from flowsched.inspect.arithmetic import count, say_spread
from flowsched.sharding import Deal, Mode

MOST_RANKS = 32
_FEW_BATCHES = 12
_MOST_IDS = 12


def render_deal(deal: Deal, *, everything: bool = False) -> str:
    """Return who gets what of an epoch: the arithmetic, one line a rank, and what comes twice or is left out.

    Args:
        deal: the epoch.
        everything: whether all ranks are listed, however many.
    """
    shares = [_Share(deal, rank) for rank in range(deal.sharding.sharers)]
    lines = [say_deal(deal), "", f"  {say_arithmetic(deal, shares)}", "", *_table(deal, shares, everything)]
    for title, ids in (
        ("Come again to pad, with weight 0", deal.padding),
        ("Left out of this epoch", deal.dropped),
    ):
        if len(ids):
            lines += ["", f"  {title}: {say_ids(ids, most=len(ids) if everything else _MOST_IDS)}"]
    return "\n".join(lines)


def render_rank(deal: Deal, rank: int, *, everything: bool = False) -> str:
    """Return each batch of a rank, one line a batch; of many the first and last.

    Args:
        deal: the epoch.
        rank: whose batches.
        everything: whether all batches and ids are listed, however many.
    """
    share = _Share(deal, rank)
    steps = list(range(share.batches))
    left_out = 0 if everything else max(0, len(steps) - _FEW_BATCHES)
    if left_out:
        steps = [*steps[: _FEW_BATCHES // 2], *steps[-_FEW_BATCHES // 2 :]]
    header = ("batch", "rows", "weight", "samples")
    rows = [header, *(_batch_cells(deal, rank, step, everything) for step in steps)]
    lines = align(rows, (True, True, True))
    if left_out:
        lines.insert(1 + _FEW_BATCHES // 2, f"  ... {left_out:,} more: --all")
    title = (
        f"{say_deal(deal)}\n\n  rank {rank}: {count(share.samples, 'sample')} in {_batches(share.batches)}"
    )
    return "\n".join([title, "", *lines] if steps else [title])


def deal_to_dict(deal: Deal, rank: int | None = None) -> dict[str, Any]:
    """Return an epoch as plain data: the declaration, each rank's numbers, and the batches of one rank if asked.

    Args:
        deal: the epoch.
        rank: the rank whose batches are listed, with ids and weights; None for the numbers of all alone.
    """
    given = deal.sharding
    names = ("samples", "ranks", "batch_size", "mode", "group", "shuffle", "seed", "tail")
    shown = range(given.ranks) if rank is None else [rank]
    shares = [_Share(deal, one) for one in shown]
    found: dict[str, Any] = {name: getattr(given, name) for name in names}
    found |= {"epoch": deal.epoch, "steps": deal.steps}
    found["shares"] = [
        {"rank": one.rank, "samples": one.samples, "batches": one.batches, "padding": one.padding}
        for one in shares
    ]
    found |= {"padding": deal.padding.tolist(), "dropped": deal.dropped.tolist()}
    if rank is not None:
        found["batches"] = [
            {
                "step": step,
                "weight": deal.weight(rank, step),
                "ids": deal.batch(rank, step).tolist(),
                "real": deal.real(rank, step).tolist(),
            }
            for step in range(deal.batches(rank))
        ]
    return found


class _Share:
    """The numbers of one rank. All steps but the last two are full, so that only these are computed."""

    def __init__(self, deal: Deal, rank: int) -> None:
        most = deal.sharding.batch_size // deal.sharding.group * deal.sharding.group
        self.rank, self.batches = rank, deal.batches(rank)
        full = max(0, self.batches - 2)
        real = [deal.real(rank, step) for step in range(full, self.batches)]
        self.sizes = Counter({most: full} if full else {})
        self.sizes.update(len(rows) for rows in real)
        self.weights = [1.0] * min(1, full)
        self.weights += [deal.weight(rank, step) for step in range(full, self.batches)]
        self.samples = full * most + sum(int(np.count_nonzero(rows)) for rows in real)
        self.padding = sum(len(rows) for rows in real) - (self.samples - full * most)


def say_deal(deal: Deal) -> str:
    """Return in one line what is dealt.

    >>> from flowsched.sharding import Sharding
    >>> say_deal(Deal(Sharding(7, 4, 2)))
    'exact: 7 samples to 4 ranks in batches of 2: each sample once, none left out'
    """
    given = deal.sharding
    groups = f" in {count(given.units, 'group')} of {given.group:,}" if given.group > 1 else ""
    order = f", shuffled (seed {given.seed}, epoch {deal.epoch})" if given.shuffle else ""
    size = f"batches of {given.batch_size:,}{order}"
    if given.mode == Mode.LOCAL:
        own = f"{count(given.samples, 'sample')}{groups} of each rank's own"
        return f"local: {own} stay with it, in {size}: nothing is shared out"
    fate = "each sample once, none left out"
    if len(deal.padding):
        fate = f"{_rows(len(deal.padding))} to pad, none left out"
    elif len(deal.dropped):
        fate = f"each sample once but {len(deal.dropped):,}, which are left out"
    to = count(given.ranks, "rank")
    return f"{given.mode}: {count(given.samples, 'sample')}{groups} to {to} in {size}: {fate}"


def say_arithmetic(deal: Deal, shares: Sequence[_Share]) -> str:
    """Return why ranks get what they get, in one line: steps, and what each takes."""
    if not deal.steps:
        return "No rank has a batch."
    given = deal.sharding
    most = given.batch_size // given.group * given.group
    totals = [deal.seen_after(step + 1) - deal.seen_after(step) for step in _last_steps(deal)]
    window = most * given.sharers
    full = max(0, deal.steps - 2) + totals.count(window)
    each = f"{given.sharers:,} x {most:,}" if given.sharers > 1 else ""
    parts = [f"{count(full, 'step')} of {window:,}" + (f" ({each})" if each else "")] if full else []
    parts += [f"{'1 step' if not full else '1'} of {total:,}" for total in totals if total != window]
    said = " + ".join(parts)
    if given.sharers == 1:
        return said
    loads = sorted(Counter(share.samples for share in shares).items(), reverse=True)
    got = ", ".join(f"{ranks:,} get{'s' if ranks == 1 else ''} {load:,}" for load, ranks in loads)
    return f"{said}; of {count(given.ranks, 'rank')} {got}"


def say_ids(ids: NDArray[np.integer[Any]], most: int = _MOST_IDS) -> str:
    """Return ids in their order, runs of them as half-open ranges, at most so many terms.

    >>> say_ids(np.array([0, 1, 2, 3, 9, 7, 8]))
    '[0:4, 9, 7:9]'
    >>> say_ids(np.array([5, 3, 1, 8]), most=2), say_ids(np.array([], dtype=int))
    ('[5, 3, ... 2 more]', '[]')
    """
    starts = np.flatnonzero(np.diff(ids, prepend=ids[:1] - 2) != 1)
    shown, stops = starts[:most], np.append(starts[1:], len(ids))
    terms = [
        f"{ids[start]}" if stop - start == 1 else f"{ids[start]}:{ids[stop - 1] + 1}"
        for start, stop in zip(shown.tolist(), stops.tolist(), strict=False)
    ]
    left_out = len(ids) - int(stops[len(shown) - 1]) if len(shown) else 0
    return f"[{', '.join(terms)}{f', ... {left_out:,} more' if left_out else ''}]"


def _table(deal: Deal, shares: Sequence[_Share], everything: bool) -> list[str]:
    """Return one line a rank; of many ranks the first and last."""
    even, costs = deal.sharding.mode == Mode.EVEN, deal.sharding.lengths
    header = ["rank", "samples", "batches", "rows/batch", *["weights"] * even]
    header += [*["length"] * (costs is not None), "first batch", "last batch"]
    few = shares if everything or len(shares) <= MOST_RANKS else [*shares[:8], *shares[-8:]]
    rows = []
    for share in few:
        name = "each" if deal.sharding.mode == Mode.LOCAL else f"{share.rank}"
        cells = [name, f"{share.samples:,}", f"{share.batches:,}", say_spread(tuple(_sorted(share.sizes)))]
        if even:
            cells.append(", ".join(f"{weight:.4g}" for weight in dict.fromkeys(share.weights)) or "-")
        if costs is not None:
            cells.append(f"{np.asarray(costs)[deal.ids(share.rank)].sum():,.6g}")
        ends = [0, share.batches - 1] if share.batches else []
        cells += [say_ids(deal.batch(share.rank, step), most=4) for step in ends] or ["-", "-"]
        rows.append(cells)
    lines = align([header, *rows], [True] * (len(header) - 2))
    if len(few) < len(shares):
        lines.insert(9, f"  ... {len(shares) - len(few):,} more: --all")
    return lines


def _batch_cells(deal: Deal, rank: int, step: int, everything: bool) -> tuple[str, ...]:
    ids, real = deal.batch(rank, step), deal.real(rank, step)
    said = say_ids(ids[real], most=len(ids) if everything else _MOST_IDS)
    if not real.all():
        said += f", {say_ids(ids[~real], most=len(ids) if everything else _MOST_IDS)} to pad"
    return f"{step:,}", f"{len(ids):,}", f"{deal.weight(rank, step):.4g}", said


def _sorted(sizes: Counter[int]) -> list[tuple[int, int]]:
    return sorted(sizes.items(), reverse=True)


def _last_steps(deal: Deal) -> range:
    return range(max(0, deal.steps - 2), deal.steps)


def _rows(number: int) -> str:
    return f"{number:,} come{'s' if number == 1 else ''} again"


def _batches(number: int) -> str:
    return f"{number:,} batch{'' if number == 1 else 'es'}"
