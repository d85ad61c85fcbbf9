"""Whether each replica has one queue: positions 0, 1, 2, ... over all nodes that it serves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flowsched.check.block import Block, locate, say_more
from flowsched.errors import Problem
from flowsched.plan.table import Int64


@dataclass(frozen=True, eq=False)
class Queues:
    """The queues of the replicas that some nodes share, laid end to end.

    Attributes:
        queue: (calls,) which queue each call of these nodes stands in, in the order of the table.
        slot: (calls,) the place of each in the queues, laid end to end.
        number: (calls,) number in the table of each of these calls.
        counts: (replicas with calls, or all of them,) length of each queue.
        beyond: (calls,) whether a position lies outside its queue; its slot is then meaningless.
    """

    queue: NDArray[np.integer]
    slot: Int64
    number: Int64
    counts: Int64
    beyond: np.ndarray[tuple[int], np.dtype[np.bool_]]

    def in_order(self) -> Int64 | None:
        """Return the numbers of the calls as queued; None where two calls share a place."""
        if self.beyond.any():
            return None
        queued = np.full(len(self.slot), -1, np.int64)
        queued[self.slot] = self.number
        return None if (queued < 0).any() else queued


def line_up(blocks: Sequence[Block]) -> list[Queues]:
    """Return the queues of each owner of replicas; those with calls on unknown replicas are left out."""
    by_owner: dict[str, list[Block]] = {}
    for block in blocks:
        if len(block):
            by_owner.setdefault(block.owner, []).append(block)
    return [_line_up(served) for served in by_owner.values() if all(map(_on_replicas, served))]


def _on_replicas(block: Block) -> bool:
    return bool(block.replica.min() >= 0 and block.replica.max() < block.replicas)


def _line_up(served: Sequence[Block]) -> Queues:
    queue: NDArray[np.integer] = np.concatenate([block.replica for block in served])
    position = np.concatenate([block.position for block in served])
    number = np.concatenate([np.arange(block.first, block.first + len(block)) for block in served])
    if served[0].replicas > len(queue):  # many of them have no queue
        _, queue = np.unique(queue, return_inverse=True)
    counts = np.bincount(queue)
    beyond = (position < 0) | (position >= counts[queue])
    return Queues(queue, (np.cumsum(counts) - counts)[queue] + position, number, counts, beyond)


def find_queue_problems(lines: Sequence[Queues], blocks: Sequence[Block]) -> Iterator[Problem]:
    """Yield positions that leave gaps in a replica's queue, or share a place in it."""
    for queues in lines:
        if queues.beyond.any():
            block, at = locate(blocks, int(queues.number[queues.beyond.argmax()]))
            length = queues.counts[queues.queue[queues.beyond.argmax()]]
            message = f"its replica has {length} calls, so that no position is {block.position[at]}"
            more = say_more(queues.beyond, "call")
            yield block.blame("queue", at, message + more, f"Give it a position from 0 to {length - 1}")
        elif queues.in_order() is None:
            taken = np.bincount(queues.slot)[queues.slot] > 1
            first, second = np.flatnonzero(queues.slot == queues.slot[taken.argmax()])[:2]
            block, at = locate(blocks, int(queues.number[second]))
            other, other_at = locate(blocks, int(queues.number[first]))
            message = f"its position {block.position[at]} is also that of {other.say_call(other_at)}"
            yield block.blame("queue", at, message, "Number the calls of a replica 0, 1, 2, ...")
