"""One epoch of a sharding: which samples each rank has in each of its batches."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from flowsched.sharding.balance import balance
from flowsched.sharding.cuts import cut_steps
from flowsched.sharding.declaration import Mode, Sharding, Tail
from flowsched.sharding.order import shuffle

Ids = NDArray[np.int64]


class Deal:
    """One epoch, or what is left of it. It is made at once and computes batches as they are asked for.

    Args:
        sharding: what is dealt.
        epoch: number of the epoch, which changes the order where samples are shuffled.
        seen: samples that the epoch has seen already, whole groups of them.

    Attributes:
        sharding: likewise.
        epoch: likewise.
        seen: likewise.
        steps: how many times the ranks take a batch.
    """

    def __init__(self, sharding: Sharding, epoch: int = 0, seen: int = 0) -> None:
        self.sharding, self.epoch, self.seen = sharding, epoch, seen
        self._cuts: list[int] = cut_steps(sharding, seen // sharding.group).tolist()
        self.steps = len(self._cuts) - 1

    def batches(self, rank: int) -> int:
        """Return how many batches a rank has."""
        if self.sharding.mode == Mode.EVEN or not self.steps:
            return self.steps
        ranks = self.sharding.sharers
        return self.steps - (self._cuts[-1] - self._cuts[-2] <= rank % ranks)

    def batch(self, rank: int, step: int) -> Ids:
        """Return (n,) ids of the samples of one batch, repeated ones included."""
        return self._expand(self._take(self._positions(rank, step)))

    def lists(self, rank: int, begin: int = 0) -> Iterator[list[int]]:
        """Yield the ids of each batch of a rank, from that of step ``begin`` on."""
        count = self.batches(rank)
        if (
            self._order is None
            and self.sharding.group == 1
            and self.sharding.tail != Tail.PAD
            and not self._costs
        ):
            for step in range(begin, count):
                yield list(range(*self._share(rank, step)))
            return
        for step in range(begin, count):
            yield self.batch(rank, step).tolist()

    def ids(self, rank: int) -> Ids:
        """Return (n,) ids of all samples of a rank in its order, each once: none that comes again to pad."""
        own = [self.batch(rank, step)[self.real(rank, step)] for step in range(self.batches(rank))]
        return np.concatenate([np.empty(0, np.int64), *own])

    def real(self, rank: int, step: int) -> NDArray[np.bool_]:
        """Return (n,) for each row of a batch whether it counts; rows that pad do not."""
        return np.repeat(self._positions(rank, step) < self.sharding.units, self.sharding.group)

    def weight(self, rank: int, step: int) -> float:
        """Return what the mean loss of a batch is to be multiplied by.

        The mean over ranks of the products, which is what collectives make of gradients, is then the mean over all
        rows of the step: the number of the batch's rows over their mean number. Rows that pad count nothing, and
        the mean over the batch must leave them out.
        """
        of_all = min(self._cuts[step + 1], self.sharding.units) - self._cuts[step]
        own = int(np.count_nonzero(self._positions(rank, step) < self.sharding.units))
        return own * self.sharding.sharers / of_all

    def seen_after(self, steps: int) -> int:
        """Return how many samples of the epoch have been seen when every rank has taken so many batches."""
        return min(self._cuts[min(steps, self.steps)], self.sharding.units) * self.sharding.group

    @property
    def padding(self) -> Ids:
        """(n,) ids of samples that come a second time, to pad."""
        units = self.sharding.units
        return self._expand(self._take(np.arange(units, max(units, self._cuts[-1]))))

    @property
    def dropped(self) -> Ids:
        """(n,) ids of samples that are left out of the epoch."""
        return self._expand(self._take(np.arange(self._cuts[-1], max(self.sharding.units, self._cuts[-1]))))

    @cached_property
    def places(self) -> Ids:
        """(n,) for each sample, by its id, which row it is where the rows of all ranks lie one after another."""
        if self.sharding.mode == Mode.LOCAL:
            return np.argsort(self.ids(0), kind="stable")
        everything = np.concatenate([self.ids(rank) for rank in range(self.sharding.ranks)])
        return np.argsort(everything, kind="stable")

    @cached_property
    def _order(self) -> NDArray[np.unsignedinteger] | None:
        given = self.sharding
        return shuffle(given.units, given.seed, self.epoch) if given.shuffle else None

    @cached_property
    def _costs(self) -> tuple[NDArray[np.float64], ...]:
        """The costs of units, by unit, or nothing."""
        given = self.sharding
        if given.lengths is None or given.sharers == 1:
            return ()
        return (np.asarray(given.lengths).reshape(given.units, given.group).sum(axis=1),)

    def _share(self, rank: int, step: int) -> tuple[int, int]:
        """Return the positions that a rank takes of a step, where those of all ranks lie one after another."""
        start, stop = self._cuts[step], self._cuts[step + 1]
        ranks = self.sharding.sharers
        rank %= ranks
        least, longer = divmod(stop - start, ranks)
        begin = start + rank * least + min(rank, longer)
        return begin, begin + least + (rank < longer)

    def _positions(self, rank: int, step: int) -> Ids:
        """Return the positions in the epoch's order that a rank takes of a step."""
        if not self._costs:
            return np.arange(*self._share(rank, step))
        positions = np.arange(self._cuts[step], self._cuts[step + 1])
        own: Ids = positions[balance(self._costs[0][self._take(positions)], self.sharding.ranks) == rank]
        return own

    def _take(self, positions: Ids) -> Ids:
        """Return the units at positions; those past the end begin again."""
        if len(positions) and positions[-1] >= self.sharding.units:
            positions = positions % self.sharding.units
        if self._order is None:
            return positions
        taken: Ids = self._order[positions].astype(np.int64)
        return taken

    def _expand(self, units: Ids) -> Ids:
        """Return the ids of the samples of units."""
        group = self.sharding.group
        return units if group == 1 else (units[:, None] * group + np.arange(group)).reshape(-1)
