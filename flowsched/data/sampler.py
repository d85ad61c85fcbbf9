"""Which samples are in which batch of this process, for a ``DataLoader`` of torch's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import torch.distributed as dist
from numpy.typing import NDArray
from torch.utils.data import Sampler

from flowsched.data.guard import refuse_second_sharding
from flowsched.data.place import find_place
from flowsched.data.state import check_epoch, digest_lengths, read_state, write_state
from flowsched.sharding import Deal, Mode, Sharding, Tail


class ShardedBatchSampler(Sampler[list[int]]):
    """The ids of the samples in each batch of this process, for ``DataLoader(dataset, batch_sampler=...)``.

    A loader with more processes than samples in its last step leaves some of them an empty batch in mode "even",
    which torch's own collating refuses; :class:`flowsched.data.ShardedLoader` makes one of zero rows.

    Args:
        data: the data set, or how many samples it has.
        batch_size: the most samples in one batch.
        mode: "exact": each sample to exactly one rank; "even": likewise, with as many batches on each rank;
            "local": the data is this rank's own already.
        group: samples in a row that stay together in one batch, such as the answers to one prompt.
        shuffle: whether each epoch has an order of its own.
        seed: of those orders; the same on all ranks.
        tail: what "even" does with samples that fill no batch: "cut", "pad" or "drop".
        lengths: (samples,) cost of each sample; batches of one step then cost about the same.
        fingerprint: what the data set is called in states, so that one of another data set is refused.
        rank: this process's number; with ``ranks``, where neither a process group nor the launcher says it.
        ranks: how many processes there are.
        process_group: whose ranks the data is dealt to; by default those of all processes.

    Raises:
        ShardingError: numbers that do not fit each other; see :class:`flowsched.sharding.Sharding`.

    >>> [list(ShardedBatchSampler(10, 2, rank=rank, ranks=3)) for rank in range(3)]
    [[[0, 1], [6, 7]], [[2, 3], [8]], [[4, 5], [9]]]
    """

    def __init__(
        self,
        data: Sized | int,
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
    ) -> None:
        samples = data if isinstance(data, int) or not isinstance(data, Sized) else len(data)
        place = find_place(rank, ranks, process_group)
        self.rank, self.ranks = place.rank, place.ranks
        self.sharding = Sharding(
            samples, place.ranks, batch_size, mode, group, shuffle, seed, tail, lengths=lengths
        )
        self.fingerprint = fingerprint
        self._deal = Deal(self.sharding)
        self._handed = 0
        self.ended = False  # whether the last iteration has handed out everything, and the next begins anew

    def __iter__(self) -> Iterator[list[int]]:
        refuse_second_sharding(self)
        if self.ended:
            self._begin(Deal(self.sharding, self.epoch))
        self._handed = 0
        return self._hand_out(self._deal)

    def __len__(self) -> int:
        refuse_second_sharding(self)
        return self._deal.batches(self.rank)

    @property
    def sampler(self) -> NoReturn:
        """There is none below: this is asked only by what would deal batches again, and refused then."""
        refuse_second_sharding(self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute 'sampler'")

    @property
    def batch_size(self) -> int:
        """The most samples in one batch."""
        refuse_second_sharding(self)
        return self.sharding.batch_size

    @property
    def deal(self) -> Deal:
        """The epoch that is iterated, was iterated last, or comes next: who has which samples in which batch."""
        return self._deal

    @property
    def epoch(self) -> int:
        """Its number."""
        return self._deal.epoch

    @property
    def weights(self) -> NDArray[np.float64]:
        """(batches,) for each batch of this process, what its mean loss is to be multiplied by."""
        return np.array([self._deal.weight(self.rank, step) for step in range(self._deal.batches(self.rank))])

    def set_epoch(self, epoch: int) -> None:
        """Go to another epoch, from its beginning. The epoch that is there already stays as it is."""
        refuse_second_sharding(self)
        if check_epoch(epoch) != self.epoch:
            self._begin(Deal(self.sharding, epoch))

    def state_dict(self, batches: int | None = None) -> dict[str, Any]:
        """Return where the epoch stands, as plain numbers and strings: the same on each rank after the same step.

        Args:
            batches: how many batches have been used since the epoch began or was resumed, this rank's or those of
                the rank that has most; by default, as many as the last iteration has handed out. A ``DataLoader``
                with workers takes batches before they are used: count them, or use
                :class:`flowsched.data.ShardedLoader`, which does.
        """
        if batches is None:
            batches = self._deal.steps if self.ended else self._handed
        return write_state(self._deal, batches, self._digest, self.fingerprint)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on at the first sample that a state has not seen, with whatever ranks and batch size there are now.

        Once what is left has been iterated, or at another epoch, epochs are whole again.

        Raises:
            ShardingError: a state of another data set, order or format.
        """
        epoch, seen = read_state(state, self.sharding, self._digest, self.fingerprint)
        self._begin(Deal(self.sharding, epoch, seen))

    def _begin(self, deal: Deal) -> None:
        self._deal, self._handed, self.ended = deal, 0, False

    def _hand_out(self, deal: Deal) -> Iterator[list[int]]:
        for step, ids in enumerate(deal.lists(self.rank)):
            if self._is_at(deal):
                self._handed, self.ended = step + 1, False
            yield ids
        if self._is_at(deal):
            self.ended = True

    def _is_at(self, deal: Deal) -> bool:
        """Return whether a loop is over the epoch that the sampler is at, and not over one that has been left."""
        return (deal.epoch, deal.seen) == (self.epoch, self._deal.seen)

    @cached_property
    def _digest(self) -> str | None:
        return digest_lengths(self.sharding)
