"""An ``IterableDataset`` that yields the batches of this process, of data that is there or that arrives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import torch.distributed as dist
from numpy.typing import NDArray
from torch.utils.data import IterableDataset, default_collate

from flowsched.data.guard import refuse_batching, refuse_second_sharding
from flowsched.data.place import find_place
from flowsched.data.progress import Progress
from flowsched.data.state import check_epoch, digest_lengths, read_state, write_state
from flowsched.data.structure import drop_rows
from flowsched.data.windows import deal_stream, measure_window
from flowsched.errors import Problem
from flowsched.sharding import Deal, Mode, Sharding, ShardingError, Tail


class ShardedDataset(IterableDataset[Any]):
    """The batches of this process, for ``DataLoader(ShardedDataset(...), batch_size=None, num_workers=...)``.

    Data with ``__len__`` and ``__getitem__`` is dealt as by :class:`flowsched.data.ShardedLoader`. Any other
    iterable is dealt as its samples arrive, just as if their number had been known. Each process and each worker
    reads all of it, so it must be the same everywhere; it can be neither shuffled nor balanced, padded nor dropped.

    Workers of a ``DataLoader`` take batches in turn: they come in the same order for any number of workers.

    Args:
        data: a data set, or an iterable of samples.
        batch_size: the most samples in one batch.
        mode: "exact", "even" or "local"; see :class:`flowsched.data.ShardedLoader`, also for what follows.
        group: samples in a row that stay together in one batch.
        shuffle: whether each epoch has an order of its own.
        seed: of those orders.
        tail: what "even" does with samples that fill no batch.
        lengths: (samples,) cost of each sample.
        fingerprint: what the data set is called in states.
        rank: this process's number.
        ranks: how many processes there are.
        process_group: whose ranks the data is dealt to.
        collate_fn: makes a batch of a list of samples.
        weighted: whether each batch comes as a pair of it and its weight.

    Raises:
        ShardingError: numbers that do not fit each other, or what cannot be done with data of unknown length.

    >>> [list(ShardedDataset(iter(range(7)), 2, rank=rank, ranks=2, collate_fn=list)) for rank in range(2)]
    [[[0, 1], [4, 5]], [[2, 3], [6]]]
    """

    def __init__(
        self,
        data: Any,
        batch_size: int,
        mode: Mode | str = Mode.EXACT,
        *,
        group: int = 1,
        shuffle: bool = False,
        seed: int = 0,
        tail: Tail | str = Tail.CUT,
        lengths: NDArray[Any] | Sequence[float] | None = None,
        fingerprint: str | None = None,
        rank: int | None = None,
        ranks: int | None = None,
        process_group: dist.ProcessGroup | None = None,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        weighted: bool = False,
    ) -> None:
        place = find_place(rank, ranks, process_group)
        self.rank, self.ranks = place.rank, place.ranks
        self.data = data
        self.counted = hasattr(data, "__getitem__") and hasattr(data, "__len__")
        if not self.counted:
            _check_stream(shuffle, tail, lengths)
        samples = len(data) if self.counted else 0
        self.sharding = Sharding(
            samples, place.ranks, batch_size, mode, group, shuffle, seed, tail, lengths=lengths
        )
        self.fingerprint = fingerprint
        self.weighted = weighted
        self._collate_fn = collate_fn or default_collate
        self._progress = Progress()
        self._deal = Deal(self.sharding)

    def __iter__(self) -> Iterator[Any]:
        refuse_second_sharding(self)
        refuse_batching(self)
        worker, workers = self._progress.begin()
        epoch, start = self._progress.epoch, self._progress.start
        steps = self._dealt(self.deal) if self.counted else self._streamed(epoch, start)
        return self._hand_out(steps, worker, workers)

    def __len__(self) -> int:
        refuse_second_sharding(self)
        return self.deal.batches(self.rank)

    @property
    def generator(self) -> None:
        """No random numbers are drawn. What would deal this out again asks for it, and is refused."""
        refuse_second_sharding(self)

    @property
    def deal(self) -> Deal:
        """The epoch that is iterated, was iterated last, or comes next; only of data whose length is known."""
        if not self.counted:
            raise TypeError(f"{type(self.data).__name__} has no length, so that of its batches is not known")
        epoch, seen = self._progress.epoch, self._progress.start
        if (self._deal.epoch, self._deal.seen) != (epoch, seen):
            self._deal = Deal(self.sharding, epoch, seen)
        return self._deal

    @property
    def weights(self) -> NDArray[np.float64]:
        """(batches,) what the mean loss of each batch of this process is to be multiplied by."""
        deal = self.deal
        return np.array([deal.weight(self.rank, step) for step in range(deal.batches(self.rank))])

    def set_epoch(self, epoch: int) -> None:
        """Go to another epoch, from its beginning, here and in workers. The one that is there already stays."""
        refuse_second_sharding(self)
        if check_epoch(epoch) != self._progress.epoch:
            self._progress.reset(epoch, 0)

    def state_dict(self, batches: int | None = None) -> dict[str, Any]:
        """Return where the epoch stands, as plain numbers and strings: the same on each rank after the same step.

        Args:
            batches: how many batches have been used since the epoch began or was resumed; by default, as many as
                have been yielded in this process. Where workers yield them, it must be given.

        Raises:
            ShardingError: it must be given, or there are not so many.
        """
        progress = self._progress
        if batches is None and progress.by_workers:
            said = "workers yield the batches, and take some before they are used"
            mend = "Count batches in the loop, and give state_dict(batches=...)"
            raise ShardingError("the state of an epoch", [Problem("unknown-step", "batches", said, mend)])
        ended = batches is None and progress.ended()
        used = progress.handed if batches is None else batches
        deal = self.deal if self.counted else self._guess_deal(used)
        return write_state(
            deal, deal.steps if ended else used, self._digest, self.fingerprint, counted=self.counted
        )

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on at the first sample that a state has not seen, with whatever ranks and batch size there are now.

        Once what is left has been iterated, or at another epoch, epochs are whole again.

        Raises:
            ShardingError: a state of another data set, order or format.
        """
        found = read_state(state, self.sharding, self._digest, self.fingerprint, counted=self.counted)
        self._progress.reset(*found)

    @cached_property
    def _digest(self) -> str | None:
        return digest_lengths(self.sharding)

    def _guess_deal(self, used: int) -> Deal:
        """Return an epoch that agrees with the stream's in its first steps, or in all if its end has been seen."""
        progress = self._progress
        more = progress.start + (used + 2) * measure_window(self.sharding)
        samples = more if progress.total is None else progress.total
        return Deal(replace(self.sharding, samples=samples), progress.epoch, progress.start)

    def _dealt(self, deal: Deal) -> Iterator[tuple[Deal, int, Any]]:
        """Yield each step of this rank, where the length is known: a deal, its step, what its ids are of."""
        for step in range(deal.batches(self.rank)):
            yield deal, step, self.data

    def _streamed(self, epoch: int, start: int) -> Iterator[tuple[Deal, int, Any]]:
        """Yield each step of this rank likewise, of a stream."""
        if hasattr(self.data, "set_epoch"):
            self.data.set_epoch(epoch)
        for window in deal_stream(self.data, self.sharding, start, self._progress.tell_total):
            if window.step < window.deal.batches(self.rank):
                yield window.deal, window.step, window.samples

    def _hand_out(self, steps: Iterator[tuple[Deal, int, Any]], worker: int, workers: int) -> Iterator[Any]:
        """Yield every so many batches of this rank, as many as there are workers; count them, and the end."""
        handed = 0
        for place, (deal, step, data) in enumerate(steps):
            if place % workers != worker:
                continue
            ids = deal.batch(self.rank, step).tolist()
            batch = self._collate_fn(_fetch(data, ids)) if ids else drop_rows(self._collate_fn([data[0]]))
            handed += 1
            self._progress.hand(handed)
            yield (batch, deal.weight(self.rank, step)) if self.weighted else batch
        self._progress.end(worker)


def _fetch(data: Any, ids: list[int]) -> list[Any]:
    return data.__getitems__(ids) if hasattr(data, "__getitems__") else [data[one] for one in ids]


def _check_stream(shuffle: bool, tail: Tail | str, lengths: object) -> None:
    given = {"shuffle": shuffle, "tail": tail != Tail.CUT, "lengths": lengths is not None}
    mend = "Leave it out, or give data that has __len__ and __getitem__"
    problems = [
        Problem("unknown-length", name, "the data arrives one after another, and nobody knows its end", mend)
        for name, is_given in given.items()
        if is_given
    ]
    if problems:
        raise ShardingError("the stream", problems)
