"""What is said of a loader that has been checked: the numbers, the verdict, and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from flowsched.data.checking import Findings
from flowsched.data.reading import Way
from flowsched.inspect.align import align
from flowsched.inspect.arithmetic import count, say_spread
from flowsched.inspect.sharding import say_ids

if TYPE_CHECKING:
    from flowsched.data.check_loader import Checked

_MOST_LISTED = 8
_WAYS = {
    Way.IDS: "samples told apart by id, no data loaded",
    Way.DIGESTS: "samples told apart by what they hold; equal ones count as repeats",
    Way.ROWS: "rows of batches told apart by what they hold; equal ones count as repeats",
}
_EXACT = (
    "For evaluation, each sample to one rank, once; ranks may differ by one batch:",
    "  flowsched.data.ShardedLoader(dataset, batch_size)",
)
_EXACT_STREAM = (
    "For evaluation, each sample to one rank, once; ranks may differ by one batch:",
    "  DataLoader(flowsched.data.ShardedDataset(stream, batch_size), batch_size=None)",
)
_EVEN = (
    "For training, as many batches on each rank, no sample repeated or dropped, with weights:",
    '  flowsched.data.ShardedLoader(dataset, batch_size, mode="even")',
)
_GATHERED = (
    "What accelerator.gather_for_metrics returns leaves repeated rows out. Sums and means that ranks make",
    "of their own batches count them, and so does the time they take.",
)
_OF_ACCELERATE = ("DataLoaderShard", "DataLoaderDispatcher")
_ALONE = (
    "This is what one process reads. Start it with torchrun, or give --ranks 4, to compare what ranks read."
)


def render_check(checked: Checked, *, everything: bool = False) -> str:
    """Return what was found as text: one line a rank, what is repeated and missing, the verdict, and what to do."""
    found = checked.findings
    kinds = " / ".join(dict.fromkeys(checked.kinds))
    lines = [f"{kinds} on {count(len(found.ranks), 'rank')} ({_WAYS[checked.way]})", ""]
    lines += [*_table(found), "", f"  {_say_total(found)}"]
    lines += [f"  {line}" for line in _details(checked, len(found.repeated) if everything else _MOST_LISTED)]
    lines += ["", *_verdict(checked)]
    return "\n".join(lines)


def check_to_dict(checked: Checked) -> dict[str, Any]:
    """Return what was found as plain data."""
    found = checked.findings
    return {
        "verdict": say_verdict(checked),
        "exact": found.exact,
        "even": found.even,
        "by": str(checked.way),
        "expected": found.expected,
        "rows": found.rows,
        "ranks": [
            {
                "rank": rank,
                "loader": checked.kinds[rank],
                "rows": one.rows,
                "batches": one.batches,
                "sizes": one.sizes.tolist(),
                "padding": one.padding,
                "ends": rank not in checked.endless,
            }
            for rank, one in enumerate(found.ranks)
        ],
        "repeated": [
            {"id": key if found.named else None, "times": times, **_where(found, key)}
            for key, times in zip(found.repeated.tolist(), found.times.tolist(), strict=True)
        ],
        "missing": found.missing.tolist(),
        "unread": found.unread,
        "unknown": found.unknown.tolist(),
    }


def say_verdict(checked: Checked) -> str:
    """Return in one sentence whether each sample counts once."""
    found = checked.findings
    if checked.endless:
        return "WRONG: the loader does not end"
    alone = " on one process" if len(found.ranks) == 1 else ""
    if found.exact:
        if found.expected is None:
            return (
                f"no sample is read twice{alone}; how many there are, the loader does not say: give --samples"
            )
        return f"EXACT{alone}: each of {count(found.expected, 'sample')} is read once"
    if found.everything:
        return f"WRONG: nothing is shared out, all {len(found.ranks)} ranks read the same samples"
    parts = []
    if len(found.repeated):
        parts.append(
            f"{count(len(found.repeated), 'sample')} repeated, {count(found.surplus, 'row')} too many"
        )
    if found.unread:
        parts.append(f"{count(found.unread, 'sample')} missing")
    if len(found.unknown):
        parts.append(f"{count(len(found.unknown), 'id')} beyond the data set")
    return f"WRONG: {', '.join(parts)}"


def _where(found: Findings, key: int) -> dict[str, Any]:
    holders = found.holders(key)
    places = [list(place) for place in found.places(key)]
    return {"ranks": {str(rank): times for rank, times in holders.items()}, "places": places}


def _table(found: Findings) -> list[str]:
    pads = any(rank.padding for rank in found.ranks)
    header = ["rank", "samples", "batches", "rows/batch", *["padding"] * pads, ""]
    most = max(rank.batches for rank in found.ranks)
    rows = []
    for number, rank in enumerate(found.ranks):
        spread = tuple(sorted(Counter(rank.sizes.tolist()).items(), reverse=True))
        notes = [f"{most - rank.batches:,} fewer"] * (rank.batches < most)
        notes += [f"{rank.empty:,} empty"] * (rank.empty > 0)
        cells = [f"{number}", f"{rank.rows:,}", f"{rank.batches:,}", say_spread(spread)]
        rows.append([*cells, *[f"{rank.padding:,}"] * pads, ", ".join(notes)])
    return align([header, *rows], [True] * (len(header) - 1))


def _say_total(found: Findings) -> str:
    parts = [f"{count(found.rows, 'row')} in all"]
    if found.expected is not None:
        parts = [f"{parts[0]}, of {count(found.expected, 'sample')}"]
    if len(found.repeated):
        parts.append(f"{found.surplus:,} of them again")
    if found.unread:
        parts.append(f"{found.unread:,} missing")
    return "; ".join(parts)


def _details(checked: Checked, most: int) -> Iterator[str]:
    found = checked.findings
    if len(found.repeated):
        spread = Counter(found.times.tolist())
        often = ", ".join(f"{number:,} read {_times(times)}" for times, number in sorted(spread.items()))
        ids = f"{say_ids(found.repeated)}: " if found.named else ""
        places = "" if found.everything else "; at rank.batch.row"
        yield f"repeated: {ids}{often}{places}"
        if not found.everything:
            yield from (f"  {line}" for line in _repeats(found, most))
    if len(found.missing):
        yield f"missing: {say_ids(found.missing)}"
    elif found.unread:
        yield f"missing: {count(found.unread, 'sample')}; which ones, what was read does not say"
    if len(found.unknown):
        yield f"beyond the data set: {say_ids(found.unknown)}"
    if checked.endless:
        yield f"reading was given up on ranks {', '.join(map(str, checked.endless))}: {_say_endless(checked)}"


def _say_endless(checked: Checked) -> str:
    found = checked.findings
    rows = " / ".join(f"{found.ranks[rank].rows:,}" for rank in checked.endless)
    given = f"the loader had given {rows} rows and went on"
    return given if found.expected is not None else f"{given}; if it is only slow, give more --patience"


def _repeats(found: Findings, most: int) -> Iterator[str]:
    """Yield who has repeated samples, first those that are repeated most."""
    order = np.argsort(-found.times, kind="stable")[:most]
    for at in order.tolist():
        key, times = int(found.repeated[at]), int(found.times[at])
        places = ", ".join(f"{rank}.{batch}.{row}" for rank, batch, row in found.places(key))
        more = ", ..." if times > 4 else ""
        name = f"sample {key} " if found.named else ""
        yield f"{name}{_times(times)}, at {places}{more}"
    if len(found.repeated) > most:
        yield f"... {len(found.repeated) - most:,} more: --all"


def _verdict(checked: Checked) -> Iterator[str]:
    found = checked.findings
    yield say_verdict(checked)
    if not found.even:
        batches = ", ".join(str(rank.batches) for rank in found.ranks)
        yield f"UNEVEN: ranks have {batches} batches; a collective in each batch, as DDP's in training, would hang"
    wrong = not found.exact or bool(checked.endless)
    blocks: list[tuple[str, ...]] = []
    blocks += [_EXACT if checked.way == Way.IDS else _EXACT_STREAM] * wrong + [_EVEN] * (
        wrong or not found.even
    )
    if found.surplus and any(kind.startswith(_OF_ACCELERATE) for kind in checked.kinds):
        blocks.append(_GATHERED)
    if len(found.ranks) == 1:
        blocks.append((_ALONE,))
    yield from (f"  {line}" for block in blocks for line in block)


def _times(number: int) -> str:
    return "twice" if number == 2 else f"{number:,} times"
