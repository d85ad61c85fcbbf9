"""One epoch of a sharding: which samples each rank has in each of its batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from flowsched.errors import Problem
from flowsched.sharding.balance import balance, balance_steps
from flowsched.sharding.cuts import cut_steps
from flowsched.sharding.declaration import Mode, Sharding, ShardingError, is_whole
from flowsched.sharding.order import shuffle

Ids = NDArray[np.int64]

_CHUNK = 1 << 16  # samples of all ranks whose batches are made at a time, so that lists of them stay small


class Deal:
    """One epoch, or what is left of it. It is made at once and computes batches as they are asked for.

    Args:
        sharding: what is dealt.
        epoch: number of the epoch, which changes the order where samples are shuffled.
        seen: samples that the epoch has seen already, whole groups of them.

    Raises:
        ShardingError: no number of an epoch, or no number of samples that can have been seen.

    Attributes:
        sharding: likewise.
        epoch: likewise.
        seen: likewise.
        steps: how many times the ranks take a batch.
    """

    def __init__(self, sharding: Sharding, epoch: int = 0, seen: int = 0) -> None:
        _refuse_bad_place(sharding, epoch, seen)
        self.sharding, self.epoch, self.seen = sharding, int(epoch), int(seen)
        self._cuts = cut_steps(sharding, seen // sharding.group)
        self.steps = self._cuts.steps

    def batches(self, rank: int) -> int:
        """Return how many batches a rank has."""
        if self.sharding.mode == Mode.EVEN or not self.steps:
            return self.steps
        ranks, (start, stop) = self.sharding.sharers, self._bounds(self.steps - 1)
        return self.steps - (stop - start <= rank % ranks)

    def rows(self, rank: int) -> Ids:
        """Return (batches,) the number of rows of each batch of a rank, those that pad included."""
        sizes = np.full(self.batches(rank), self._most, dtype=np.int64)
        for step in range(self._cuts.full, len(sizes)):
            sizes[step] = len(self._positions(rank, step))
        return sizes * self.sharding.group

    def batch(self, rank: int, step: int) -> Ids:
        """Return (n,) ids of the samples of one batch, repeated ones included."""
        return self._expand(self._take(self._positions(rank, step)))

    def lists(self, rank: int, begin: int = 0) -> Iterator[list[int]]:
        """Yield the ids of each batch of a rank, from that of step ``begin`` on."""
        full, window, most = self._cuts.full, self._cuts.window, self._most
        if self._order is None and self.sharding.group == 1 and not self._costs:
            first = self._cuts.begin + rank % self.sharding.sharers * most
            for start in range(first + begin * window, first + full * window, window):
                yield list(range(start, start + most))
        else:
            steps = max(1, _CHUNK // window)
            for at in range(begin, full, steps):
                (positions,) = self._full_positions([rank], at, min(at + steps, full))
                units = self._take(positions.reshape(-1))
                yield from self._expand(units).reshape(len(positions), -1).tolist()
        for step in range(max(begin, full), self.batches(rank)):
            yield self.batch(rank, step).tolist()

    def ids(self, rank: int) -> Ids:
        """Return (n,) ids of all samples of a rank in its order, each once: none that comes again to pad."""
        return self.ids_of([rank])[0]

    def ids_of(self, ranks: Sequence[int]) -> list[Ids]:
        """Return :meth:`ids` of each of these ranks, which costs less than asking for one after another."""
        parts: list[list[Ids]] = [[np.empty(0, np.int64)] for _ in ranks]
        steps = max(1, _CHUNK // self._cuts.window) if self._costs else max(1, self._cuts.full)
        for at in range(0, self._cuts.full, steps):
            found = self._full_positions(ranks, at, min(at + steps, self._cuts.full))
            for own, positions in zip(parts, found, strict=True):
                own.append(self._take(positions.reshape(-1)))
        for own, rank in zip(parts, ranks, strict=True):
            for step in range(self._cuts.full, self.batches(rank)):
                positions = self._positions(rank, step)
                own.append(self._take(positions[positions < self.sharding.units]))
        return [self._expand(np.concatenate(own)) for own in parts]

    def real(self, rank: int, step: int) -> NDArray[np.bool_]:
        """Return (n,) for each row of a batch whether it counts; rows that pad do not."""
        return np.repeat(self._positions(rank, step) < self.sharding.units, self.sharding.group)

    def weight(self, rank: int, step: int) -> float:
        """Return what the mean loss of a batch is to be multiplied by.

        The mean over ranks of the products, which is what collectives make of gradients, is then the mean over all
        rows of the step: the number of the batch's rows over their mean number. Rows that pad count nothing, and
        the mean over the batch must leave them out.
        """
        start, stop = self._bounds(step)
        of_all = min(stop, self.sharding.units) - start
        own = int(np.count_nonzero(self._positions(rank, step) < self.sharding.units))
        return own * self.sharding.sharers / of_all

    def seen_after(self, steps: int) -> int:
        """Return how many samples of the epoch have been seen when every rank has taken so many batches."""
        return min(self._cuts.at(steps), self.sharding.units) * self.sharding.group

    @property
    def padding(self) -> Ids:
        """(n,) ids of samples that come a second time, to pad."""
        units = self.sharding.units
        return self._expand(self._take(np.arange(units, max(units, self._end))))

    @property
    def dropped(self) -> Ids:
        """(n,) ids of samples that are left out of the epoch."""
        return self._expand(self._take(np.arange(self._end, max(self.sharding.units, self._end))))

    @cached_property
    def places(self) -> Ids:
        """(n,) for each sample, by its id, which row it is where the rows of all ranks lie one after another."""
        everything = np.concatenate(self.ids_of(range(self.sharding.sharers)))
        row = np.full(self.sharding.samples, -1, dtype=np.int64)
        row[everything] = np.arange(len(everything))
        return row if len(everything) == len(row) else row[row >= 0]

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

    @property
    def _most(self) -> int:
        """How many units a rank takes of a full step."""
        return self.sharding.batch_size // self.sharding.group

    @property
    def _end(self) -> int:
        return self._cuts.at(self.steps)

    def _bounds(self, step: int) -> tuple[int, int]:
        """Return the positions at which a step begins and ends."""
        return self._cuts.at(step), self._cuts.at(step + 1)

    def _share(self, rank: int, step: int) -> tuple[int, int]:
        """Return the positions that a rank takes of a step, where those of all ranks lie one after another."""
        start, stop = self._bounds(step)
        ranks = self.sharding.sharers
        rank %= ranks
        least, longer = divmod(stop - start, ranks)
        begin = start + rank * least + min(rank, longer)
        return begin, begin + least + (rank < longer)

    def _positions(self, rank: int, step: int) -> Ids:
        """Return the positions in the epoch's order that a rank takes of a step."""
        if not self._costs:
            begin, end = self._share(rank, step)
            return np.arange(begin, end)
        start, stop = self._bounds(step)
        positions = np.arange(start, stop)
        owners = balance(self._costs[0][self._take(positions)], self.sharding.ranks)
        taken: Ids = positions[owners == rank]
        return taken

    def _full_positions(self, ranks: Sequence[int], start: int, stop: int) -> list[Ids]:
        """Return for each of these ranks (steps, units) the positions that it takes of steps that are full."""
        window, most = self._cuts.window, self._most
        begins = self._cuts.begin + np.arange(start, stop)[:, None] * window
        if not self._costs:
            sharers = self.sharding.sharers
            return [begins + np.arange(most) + rank % sharers * most for rank in ranks]
        positions = begins + np.arange(window)
        costs = self._costs[0][self._take(positions.reshape(-1))].reshape(-1, window)
        owners = balance_steps(costs, self.sharding.ranks)
        return [positions[owners == rank].reshape(-1, most) for rank in ranks]

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


def _refuse_bad_place(sharding: Sharding, epoch: int, seen: int) -> None:
    problems = []
    if not is_whole(epoch) or epoch < 0:
        problems.append(
            Problem("no-such-epoch", "epoch", f"{epoch!r} is no number of an epoch", "Count from 0")
        )
    if not is_whole(seen) or not 0 <= seen <= sharding.samples or seen % sharding.group:
        said = f"{seen!r} of {sharding.samples} samples in groups of {sharding.group} cannot have been seen"
        problems.append(
            Problem("no-such-place", "seen", said, "Give whole groups, and no more than there are")
        )
    if problems:
        raise ShardingError("the epoch", problems)
