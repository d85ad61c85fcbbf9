"""What a worker or a model's constructor can ask about its place in the plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from flowsched.seeds import row_seeds

_MADE = 0xD1B54A32D192ED03  # any number will do that tells rows made from rows read


@dataclass(frozen=True)
class ReplicaContext:
    """Given to a model's constructor that has a parameter named ``context``.

    Attributes:
        node: name of the node that owns the replica.
        replica: index of the replica, 0-based.
        replicas: number of replicas of the node.
        device: the device that the backend assigns to the replica, e.g. ``"cuda:1"``; None if it assigns none.
    """

    node: str
    replica: int
    replicas: int
    device: str | None


@dataclass(frozen=True)
class Context:
    """Given to a worker that has a parameter named ``context``, anew for each call.

    Attributes:
        node: name of the node.
        replica: index of the replica, 0-based.
        replicas: number of replicas that serve the node.
        device: the device that the backend assigns to the replica; None if it assigns none.
        step: number of the step in its session, from 0.
        start, stop: the rows of the node that the call reads, half-open.
        made_start, made_stop: the rows of the node that it makes, half-open; others where it expands or collapses.
        sample_ids: (rows,) index in the step's input of the sample that each row belongs to; the first one,
            where several samples became one row.
        cancelled: returns True once the step has failed or was interrupted; a long worker may then return
            early, since its result will not be used.
        entropy: a number drawn from the session's seed, the step and the node.
    """

    node: str
    replica: int
    replicas: int
    device: str | None
    step: int
    start: int
    stop: int
    made_start: int
    made_stop: int
    sample_ids: NDArray[np.int64]
    cancelled: Callable[[], bool] = field(repr=False)
    entropy: int = field(repr=False)

    @cached_property
    def seeds(self) -> NDArray[np.uint64]:
        """(rows read,) one seed for each row, the same for any replica count, batch size and backend.

        The seeds are numpy integers; torch takes ``torch.Generator().manual_seed(int(context.seeds[0]))``.
        """
        return row_seeds(self.entropy, self.start, self.stop)

    @cached_property
    def made_seeds(self) -> NDArray[np.uint64]:
        """(rows made,) likewise for each row that the call makes, such as each of the answers to a prompt."""
        return row_seeds(self.entropy ^ _MADE, self.made_start, self.made_stop)

    def rng(self, row: int) -> np.random.Generator:
        """Return a generator of random numbers for the ``row``-th row that the call reads (from 0)."""
        return np.random.default_rng(self.seeds[row])
