"""Rows that ranks have made of their samples, all of them in the order of the input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
import torch.distributed as dist

from flowsched.batch import Batch, count_rows
from flowsched.batch.columns import Path
from flowsched.batch.errors import say_column
from flowsched.data import ordering
from flowsched.data.agreeing import (
    Padding,
    Told,
    find_conflicts,
    find_misfits,
    find_reference,
    padding_of,
    read_number,
    read_padding,
)
from flowsched.data.packing import Column, Packed, pack
from flowsched.data.peers import OtherCallError, Peers
from flowsched.data.receiving import Receiver, Senders
from flowsched.errors import Problem, ProblemsError, say_exception
from flowsched.sharding import Deal

Turn: TypeAlias = tuple[Mapping[int, Sequence[torch.Tensor]], Iterator[int]]
"""The bytes of each rank in one turn, sent or received into, and the ranks as theirs arrive."""


@dataclass(frozen=True)
class Failure:
    """Rows of a rank that have come and cannot be put where they belong, and what was raised."""

    rank: int
    path: Path
    cause: Exception


class GatherError(ProblemsError):
    """Rows of ranks that do not fit together, or a rank that cannot send its own. Raised on all ranks alike."""

    code = "gather"


def gather(
    rows: Batch,
    loader: Any = None,
    *,
    process_group: dist.ProcessGroup | None = None,
    to: int | None = None,
    padding: Padding = None,
) -> Batch:
    """Return the rows of all ranks, each once, in the order of the input.

    All ranks of the group call it once, after the loop: ranks may have different numbers of batches. Before any row
    is sent, all ranks know what each has, so that what does not fit is refused on all of them, and nobody waits.

    A :class:`ShardedLoader` knows how far it is, and rows are counted against that. With any other loader it is
    enough that all ranks have the rows of as many whole batches.

    Args:
        rows: what this rank has made, one row for each sample of its batches so far, in the order in which they
            came, those that pad included: a tensor, a numpy array, a list (of strings, of tensors of any length, of
            anything that pickles), or a dict of these. None or an empty list where it has none.
        loader: whose batches they were: a :class:`ShardedLoader`, a ``DataLoader`` over a
            :class:`ShardedBatchSampler`, or anything with a ``deal``. Rows that pad are left out. Where samples are
            each rank's own (mode "local"), or without a loader, rows come rank after rank.
        process_group: whose ranks take part; by default all processes.
        to: the only rank of the group that gets the rows; others get None.
        padding: fills rows of tensors and arrays on the right where they are longer on another rank; a number, or a
            dict of numbers by dotted path of the column. A list of tensors stays as it is.

    Returns:
        The same kind of thing as ``rows``, without gradients. Tensors are on the device of this rank's own.

    Raises:
        GatherError: another call, such as weighted_mean, on another rank; a loader of another rank; a number of
            rows other than dealt; other columns, kinds, dtypes, or shapes of rows than on another rank; rows that
            cannot be sent, of which the rank that has them raises the cause; elements that do not unpickle, which
            each rank that gets rows raises with the cause once all have travelled (with ``to``, the others return
            None), so that the group can go on.
        ShardingError: this process is not in the group, or has none although others were started.

    >>> import torch
    >>> from flowsched.data import ShardedBatchSampler
    >>> batches = ShardedBatchSampler(5, 2, shuffle=True, rank=0, ranks=1)
    >>> gather(torch.tensor([10 * sample for batch in batches for sample in batch]), batches)
    tensor([ 0, 10, 20, 30, 40])
    """
    peers = Peers(process_group)
    to, padding = read_number(to), read_padding(padding)
    told, packed, deal, cause = _prepare(rows, loader, peers, to, padding)
    try:
        everyone: list[Told] = peers.tell("gather", told)
    except OtherCallError as error:
        raise GatherError("gather", error.problems) from None
    problems = _find_problems(everyone, deal)
    if problems:
        raise GatherError("gather", problems) from cause
    counts, places = ordering.place(deal, [one.rows for one in everyone])
    reference = everyone[find_reference(everyone)]
    found: Any = None
    failures: list[Failure] = []
    for path, column in reference.columns.items():
        columns = {rank: one.columns[path] for rank, one in enumerate(everyone) if one.rows}
        travel = peers.device_for(column.device)
        own = packed[path] if told.rows else Packed(column)
        home = own.parts[-1].device if own.parts else travel
        senders = Senders(column, columns, counts, places, travel, home)
        got = _exchange(peers, own, senders, to, padding_of(column, padding), failures)
        found = got if not path else _insert(found or {}, path, got)
    if failures:  # only now: others send and receive all columns
        raise GatherError("gather", map(_say_failure, failures)) from failures[0].cause
    return found if to in (None, peers.rank) else None


def _prepare(
    rows: Batch, loader: Any, peers: Peers, to: int | None, padding: Padding
) -> tuple[Told, Mapping[Path, Packed], Deal | None, BaseException | None]:
    """Return what this rank tells and sends; what goes wrong is told, too, or others would wait for it."""
    try:
        deal, place = (None, None) if loader is None else ordering.find_deal(loader)
        count = count_rows(rows) or 0
        problems = list(_check_arguments(to, peers, deal, place, padding))
        if not problems:
            problems += ordering.check_own(deal, peers.rank, count, ordering.count_batches(loader))
        if problems:
            raise GatherError("gather", problems)
        packed = pack(rows, ordering.keep_own(deal, peers.rank, count))
    except ProblemsError as error:
        return Told(problems=error.problems), {}, None, error.__cause__
    except Exception as error:  # noqa: BLE001 - rows may refuse in any way, and other ranks wait
        problem = Problem(
            "unsendable", f"rank {peers.rank}", say_exception(error), "Give rows that this rank can send"
        )
        return Told(problems=(problem,)), {}, None, error
    columns = {path: one.column for path, one in packed.items()}
    told = Told(count, columns, ordering.describe(deal), to, padding)
    return told, packed, deal, None


def _check_arguments(
    to: Any, peers: Peers, deal: Deal | None, place: int | None, padding: Any
) -> Iterator[Problem]:
    if to is not None and (isinstance(to, bool) or not isinstance(to, int) or not 0 <= to < peers.size):
        said = f"{to!r} is no rank of the group, which has {peers.size}"
        yield Problem("no-such-rank", "to", said, f"Give 0 to {peers.size - 1}")
    if deal is not None and deal.sharding.ranks != peers.size:
        said = f"it deals to {deal.sharding.ranks} ranks, and the process group has {peers.size}"
        mend = "Give the same process_group to the loader and here"
        yield Problem("other-ranks", "loader", said, mend)
    elif place not in (None, peers.rank):
        said = f"its loader is that of rank {place}, so that these would be taken for rows of other samples"
        mend = "Leave rank= out where the loader is made, or give it this process's rank in the group"
        yield Problem("other-rank", f"rank {peers.rank}", said, mend)
    for value in padding.values() if isinstance(padding, Mapping) else (padding,):
        if value is not None and not isinstance(value, (bool, int, float)):
            mend = "Give a number, or a dict of numbers by column"
            yield Problem("bad-padding", "padding", f"{value!r} is no number", mend)


def _find_problems(everyone: Sequence[Told], deal: Deal | None) -> list[Problem]:
    """Return what is wrong, the same on all ranks."""
    # Problems of one rank come first: what it tells besides means nothing.
    problems = list(dict.fromkeys(problem for told in everyone for problem in told.problems))
    problems = problems or list(find_conflicts(everyone))
    if not problems and deal is not None and deal.sharding.mode != "local":
        problems = list(ordering.find_wrong_rows(deal, [told.rows for told in everyone]))
    return problems or list(find_misfits(everyone))


def _exchange(
    peers: Peers,
    own: Packed,
    senders: Senders,
    to: int | None,
    padding: float | int | bool | None,
    failures: list[Failure],
) -> Any:
    """Return one column of all rows, or None where it goes to another rank.

    What cannot be put where it belongs is added to ``failures``: the group is of use after all rows have travelled.
    """
    parts = [part.to(senders.travel) for part in own.parts]
    receiver = Receiver(senders, padding) if to in (None, peers.rank) else None
    targets = range(peers.size) if to is None else [to]
    others = [rank for rank in senders.columns if rank != peers.rank and receiver is not None]

    def begin(turn: int) -> Turn:
        cut = senders.cut(peers.rank, turn) if peers.rank in senders.columns else []
        sent = [part[span] for part, span in zip(parts, cut, strict=True)]
        received = {rank: receiver.buffers(rank, turn) for rank in others} if receiver is not None else {}
        arrivals = peers.exchange(sent, targets, received)
        next(arrivals)
        return {**received, peers.rank: sent}, arrivals

    def put(rank: int, turn: int, parts: Sequence[torch.Tensor]) -> None:
        if receiver is None:
            return
        try:
            receiver.put(rank, turn, parts)
        except Exception as error:  # noqa: BLE001 - what was pickled may refuse in any way
            failures.append(Failure(rank, senders.reference.path, error))

    following = begin(0)
    for turn in range(senders.turns):
        bytes_of, arrivals = following
        if turn + 1 < senders.turns:
            following = begin(turn + 1)  # travels while the rows of this turn are put where they belong
        if receiver is not None and peers.rank in senders.columns:
            put(peers.rank, turn, bytes_of[peers.rank])
        for rank in arrivals:
            if receiver is not None and not receiver.is_there(rank):
                put(rank, turn, bytes_of[rank])
    return receiver.result if receiver is not None else None


def _say_failure(failure: Failure) -> Problem:
    return Problem(
        "unreadable",
        f"rank {failure.rank}, {say_column(failure.path)}",
        f"its rows have come and cannot be read: {say_exception(failure.cause)}",
        "Give elements that unpickle on every rank that gets them",
    )


def _insert(batch: dict[str, Any], path: Path, column: Column | Any) -> dict[str, Any]:
    """Put a column where its path says, and return the batch."""
    inner = batch
    for key in path[:-1]:
        inner = inner.setdefault(key, {})
    inner[path[-1]] = column
    return batch
