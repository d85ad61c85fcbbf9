"""A ``DataLoader`` that gives this process its own samples, knows which they are, and resumes exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch.utils.data import DataLoader, IterableDataset, default_collate

from flowsched.data.accelerating import tell_accelerate
from flowsched.data.guard import refuse_second_sharding
from flowsched.data.sampler import ShardedBatchSampler
from flowsched.data.structure import drop_rows, move
from flowsched.errors import Problem
from flowsched.sharding import Deal, Mode, ShardingError, Tail

_OF_THE_SAMPLER = {
    "batch_sampler": "use torch's DataLoader for a batch sampler of your own",
    "sampler": "use torch's DataLoader for a sampler of your own",
    "drop_last": 'give mode="even", tail="drop"',
}


class ShardedLoader(DataLoader[Any]):
    """A ``DataLoader`` over a data set that is dealt to processes by :class:`flowsched.sharding.Deal`.

    It is complete as it is. ``accelerator.prepare`` hands it back unchanged; ``deepspeed.initialize`` is called
    without it. Where a rank has nothing in a step of mode "even", it gets a batch of zero rows and takes part.

    Args:
        dataset: what has ``__getitem__`` and ``__len__``.
        batch_size: the most samples in one batch.
        mode: "exact": each sample to exactly one rank; "even": likewise, with as many batches on each rank;
            "local": the data is this rank's own already.
        group: samples in a row that stay together in one batch.
        shuffle: whether each epoch has an order of its own; call :meth:`set_epoch` before each.
        seed: of those orders; the same on all ranks.
        tail: what "even" does with samples that fill no batch: "cut", "pad" or "drop".
        lengths: (samples,) cost of each sample; batches of one step then cost about the same.
        fingerprint: what the data set is called in states.
        rank: this process's number; with ``ranks``, where neither a process group nor the launcher says it.
        ranks: how many processes there are.
        process_group: whose ranks the data is dealt to.
        device: where batches are moved to; they stay where they are by default.
        collate_fn: makes a batch of a list of samples.
        **options: of ``DataLoader``, such as ``num_workers``, ``pin_memory`` and ``persistent_workers``.

    Raises:
        ShardingError: numbers that do not fit each other, an iterable data set, or options that deal it again.

    >>> loader = ShardedLoader(range(10), batch_size=2, rank=1, ranks=3)
    >>> len(loader), [batch.tolist() for batch in loader]
    (2, [[2, 3], [8]])
    """

    # accelerate's word for what is not to be prepared, nor split, again; and for what has a state to save.
    _is_accelerate_prepared = True
    use_stateful_dataloader = True

    def __init__(
        self,
        dataset: Any,
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
        device: torch.device | str | None = None,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        **options: Any,
    ) -> None:
        _check(dataset, options)
        self._batches = ShardedBatchSampler(
            dataset,
            batch_size,
            mode,
            group=group,
            shuffle=shuffle,
            seed=seed,
            tail=tail,
            lengths=lengths,
            fingerprint=fingerprint,
            rank=rank,
            ranks=ranks,
            process_group=process_group,
        )
        self.device = device
        self._used = 0
        self._ended = False
        self._deal = self._batches.deal
        if self._batches.sharding.mode == Mode.EVEN:
            collate_fn = CollateNone(dataset, collate_fn or default_collate)
        super().__init__(dataset, batch_sampler=self._batches, collate_fn=collate_fn, **options)

    def __iter__(self) -> Any:  # torch says its own iterator, which has no more to it
        refuse_second_sharding(self)
        self._batches.ended = self._ended and self._deal is self._batches.deal
        batches = super().__iter__()
        self._deal, self._used, self._ended = self._batches.deal, 0, False
        return self._hand_out(batches)

    def __len__(self) -> int:
        refuse_second_sharding(self)
        return len(self._batches)

    def __getattr__(self, name: str) -> NoReturn:
        refuse_second_sharding(self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # DataLoader sets None and a sampler that it does not use. Launchers read both.

    @property
    def batch_size(self) -> int:
        """The most samples in one batch."""
        return self._batches.batch_size

    @batch_size.setter
    def batch_size(self, value: int | None) -> None: ...

    @property
    def sampler(self) -> ShardedBatchSampler:
        """What deals: the batch sampler."""
        refuse_second_sharding(self)
        return self._batches

    @sampler.setter
    def sampler(self, value: object) -> None: ...

    @property
    def rank(self) -> int:
        """This process's number among those that the data is dealt to."""
        return self._batches.rank

    @property
    def ranks(self) -> int:
        """How many processes the data is dealt to."""
        return self._batches.ranks

    @property
    def deal(self) -> Deal:
        """The epoch that is iterated, was iterated last, or comes next: who has which samples in which batch."""
        return self._batches.deal

    @property
    def yielded(self) -> int:
        """How many batches of ``deal`` have been yielded."""
        return self._used if self._deal is self._batches.deal else 0

    @property
    def weights(self) -> NDArray[np.float64]:
        """(batches,) what the mean loss of each batch of this process is to be multiplied by."""
        return self._batches.weights

    @property
    def ids(self) -> NDArray[np.int64]:
        """(rows,) ids of the samples of the batch last yielded."""
        return self._deal.batch(self.rank, self._last)

    @property
    def real(self) -> NDArray[np.bool_]:
        """(rows,) for each row of the batch last yielded whether it counts; rows that pad do not."""
        return self._deal.real(self.rank, self._last)

    @property
    def weight(self) -> float:
        """What the mean loss of the batch last yielded is to be multiplied by, so that every row counts the same.

        Collectives take the mean of gradients over ranks, whatever the numbers of rows.
        """
        return self._deal.weight(self.rank, self._last)

    def set_epoch(self, epoch: int) -> None:
        """Go to another epoch, from its beginning. The epoch that is there already stays as it is."""
        self._batches.set_epoch(epoch)

    def state_dict(self, batches: int | None = None) -> dict[str, Any]:
        """Return where the epoch stands, as plain numbers and strings: the same on each rank after the same step.

        Args:
            batches: how many batches have been used since the epoch began or was resumed; by default, as many as
                this loader has yielded, whatever its workers hold ready.
        """
        if batches is None and self._deal is self._batches.deal:
            batches = self._deal.steps if self._ended else self._used
        return self._batches.state_dict(batches or 0)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on at the first sample that a state has not seen, with whatever ranks and batch size there are now.

        Once what is left has been iterated, or at another epoch, epochs are whole again.

        Raises:
            ShardingError: a state of another data set, order or format.
        """
        self._batches.load_state_dict(state)
        self._deal, self._used, self._ended = self._batches.deal, 0, False

    @property
    def _last(self) -> int:
        if not self._used:
            problem = Problem(
                "no-batch", "the loader", "no batch has been yielded yet", "Ask inside the loop"
            )
            raise ShardingError("the batch last yielded", [problem])
        return self._used - 1

    def _hand_out(self, batches: Iterator[Any]) -> Iterator[Any]:
        deal = self._deal
        count = deal.batches(self.rank)
        with tell_accelerate(self) as told:
            for step, batch in enumerate(batches):
                self._count(deal, step + 1)
                told.end_of_dataloader = step + 1 == count
                yield batch if self.device is None else move(batch, self.device)
        if _is_same_place(self._deal, deal):
            self._ended = True

    def _count(self, deal: Deal, used: int) -> None:
        """Say how far this loader is. Of several loops over one epoch, the one that goes on last counts."""
        if not _is_same_place(self._deal, deal):
            problem = Problem(
                "superseded",
                "the loop",
                "a state was loaded, or a loop over another epoch begun, since this one has begun",
                "Begin a new loop over the loader",
            )
            raise ShardingError("the loader", [problem])
        self._used, self._ended = used, False


def _is_same_place(one: Deal, other: Deal) -> bool:
    return (one.epoch, one.seen) == (other.epoch, other.seen)


@dataclass(frozen=True)
class CollateNone:
    """Makes a batch of zero rows of an empty list, by leaving out the rows of one that has some.

    Args:
        dataset: where a sample comes from to see what batches look like.
        collate_fn: makes a batch of samples.
    """

    dataset: Any
    collate_fn: Callable[[list[Any]], Any]

    def __call__(self, samples: list[Any]) -> Any:
        """Return a batch of the samples, with as many rows."""
        return self.collate_fn(samples) if len(samples) else drop_rows(self.collate_fn([self.dataset[0]]))


def _check(dataset: Any, options: dict[str, Any]) -> None:
    problems = [
        Problem("dealt-twice", name, "ShardedLoader deals samples itself", f"Leave it out; {mend}")
        for name, mend in _OF_THE_SAMPLER.items()
        if options.get(name)
    ]
    if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__"):
        mend = "Give DataLoader(flowsched.data.ShardedDataset(...), batch_size=None)"
        said = f"a {type(dataset).__name__} gives samples in its own order, one after another"
        problems.append(Problem("iterable", "dataset", said, mend))
    if not options.get("in_order", True):
        said = "batches would come in another order than they are dealt, and ids and states would be wrong"
        problems.append(Problem("out-of-order", "in_order", said, "Leave it out"))
    if problems:
        raise ShardingError("the loader", problems)
