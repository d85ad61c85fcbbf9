"""Where an epoch stands that several processes iterate."""

from __future__ import annotations

import torch
from torch.utils.data import get_worker_info

from flowsched.errors import Problem
from flowsched.sharding import ShardingError

_MOST_WORKERS = 1024


class Progress:
    """Where the epoch stands, in memory that workers share: which epoch, where it began, who has come to its end.

    Attributes:
        handed: batches that this process has yielded since it began to iterate.
    """

    def __init__(self) -> None:
        self._shared = torch.zeros(4 + _MOST_WORKERS, dtype=torch.int64)
        self._shared.share_memory_()  # type: ignore[no-untyped-call]
        self.handed = 0
        self._done = False
        self.reset(0, 0)

    def reset(self, epoch: int, start: int) -> None:
        """Go to a place in an epoch, here and in workers that begin to iterate after this."""
        self._shared[:] = 0
        self._shared[:3] = torch.tensor([epoch, start, -1])
        self.handed, self._done = 0, False

    def begin(self) -> tuple[int, int]:
        """Return which of how many workers this is, from 0; where all came to the end, the epoch begins anew."""
        info = get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        if workers > _MOST_WORKERS:
            said, mend = f"{workers} is above {_MOST_WORKERS}", "Give fewer workers"
            raise ShardingError("the loader", [Problem("too-many", "num_workers", said, mend)])
        if bool(self._shared[4 : 4 + workers].all()):
            self._shared[1] = 0
        self._shared[3] = info is not None
        self.handed, self._done = 0, False
        return worker, workers

    def hand(self, batches: int) -> None:
        """Say how many batches a loop has yielded; of several loops, the one that goes on last counts."""
        self.handed, self._done = batches, False

    def end(self, worker: int) -> None:
        """Say that a worker has come to the end."""
        self._shared[4 + worker] = 1
        self._done = True

    def ended(self) -> bool:
        """Return whether this process has come to the end."""
        return self._done

    def tell_total(self, samples: int) -> None:
        """Say how many samples there are."""
        self._shared[2] = samples

    @property
    def epoch(self) -> int:
        """Its number."""
        return int(self._shared[0])

    @property
    def start(self) -> int:
        """Samples of the epoch that had been seen when it was begun or resumed."""
        return int(self._shared[1])

    @property
    def total(self) -> int | None:
        """How many samples there are, once the end has been seen."""
        return None if self._shared[2] < 0 else int(self._shared[2])

    @property
    def by_workers(self) -> bool:
        """Whether the batches are yielded in other processes."""
        return bool(self._shared[3])
