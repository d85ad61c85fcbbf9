"""The calls of a node, replica by replica."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from flowsched.check.block import Block, say_more
from flowsched.errors import Problem
from flowsched.plan.table import Int32, Int64


@dataclass(frozen=True, eq=False)
class Dealt:
    """The calls of a node sorted by replica and, inside a replica, as they stand in the table.

    Attributes:
        order: (calls,) place of each call among the node's.
        used: (used,) the replicas that have calls, which may be few of them.
        counts: (used,) calls of each of these.
        offsets: (used,) where their calls begin in ``order``.
    """

    order: Int64
    used: Int32
    counts: Int64
    offsets: Int64

    def inner(self, of_neighbours: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Int64:
        """Return the places in ``order`` whose call and the one before it, of the same replica, are marked.

        Args:
            of_neighbours: (calls - 1,) whether something holds between each call in ``order`` and the next.
        """
        marked = np.flatnonzero(of_neighbours) + 1
        return marked[~np.isin(marked, self.offsets)] if len(marked) else marked


def find_replica_problems(block: Block) -> Iterator[Problem]:
    """Yield the calls on replicas that do not exist."""
    unknown = (block.replica < 0) | (block.replica >= block.replicas)
    if unknown.any():
        at = int(unknown.argmax())
        message = f"it is on replica {block.replica[at]}, but there are {block.replicas}, counted from 0"
        mend = f"Give it one of the replicas 0 to {block.replicas - 1}"
        yield block.blame("table", at, message + say_more(unknown, "call"), mend)


def deal_out(block: Block) -> Dealt:
    """Sort the calls of a node, all on replicas that exist, by replica."""
    small = block.replicas <= np.iinfo(np.uint16).max  # these numpy sorts in linear time
    keys = block.replica.astype(np.uint16) if small else block.replica
    order = np.argsort(keys, kind="stable")
    replica = block.replica[order]
    begins = np.ones(len(replica), np.bool_)
    begins[1:] = replica[1:] != replica[:-1]
    offsets = np.flatnonzero(begins)
    return Dealt(order, replica[offsets], np.diff(offsets, append=len(replica)), offsets)
