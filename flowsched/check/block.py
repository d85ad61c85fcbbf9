"""The calls of one node, as the checks look at them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from flowsched.check.sizes import Sizes
from flowsched.errors import Problem
from flowsched.graph import Node
from flowsched.plan import Call, Plan
from flowsched.plan.table import Int32, Int64


@dataclass(frozen=True, eq=False)
class Block:
    """The calls of one node; the columns are views into the table.

    Attributes:
        node: the node.
        owner: name of the node whose replicas serve it.
        replicas: how many these are.
        sizes: rows of the node.
        first: number of its first call in the table.
        replica, wave, position, start, stop, sequence: (calls,) as in the table.
    """

    node: Node
    owner: str
    replicas: int
    sizes: Sizes
    first: int
    replica: Int32
    wave: Int32
    position: Int32
    start: Int64
    stop: Int64
    sequence: Int64

    def __len__(self) -> int:
        return len(self.start)

    def within_rows(self) -> Block:
        """Return the calls with rows cut off that the node does not have, so that sums stay small."""
        start, stop = self.start, self.stop
        if not len(self) or (start.min() >= 0 and stop.max() <= self.sizes.read and (stop >= start).all()):
            return self
        inside = np.clip(start, 0, self.sizes.read)
        return replace(self, start=inside, stop=np.clip(stop, inside, self.sizes.read))

    def made_rows(self) -> tuple[Int64, Int64]:
        """Return first and last row (exclusive) that each call makes."""
        if self.node.collapse == self.node.expand == 1:
            return self.start, self.stop
        return (
            self.start // self.node.collapse * self.node.expand,
            self.stop // self.node.collapse * self.node.expand,
        )

    def say_call(self, at: int) -> str:
        """Return the at-th call of the node in call notation, without what it reads."""
        start, stop = (
            int(column[at]) // self.node.collapse * self.node.expand for column in (self.start, self.stop)
        )
        call = Call(self.node.name, int(self.replica[at]), int(self.position[at]), start, stop, ())
        return f"{call.name}[{start}:{stop}]"

    def blame(self, code: str, at: int, message: str, mend: str) -> Problem:
        """Return a problem of the at-th call of the node."""
        return Problem(code, f"node {self.node.name!r}, call {self.say_call(at)}", message, mend)

    def blame_node(self, code: str, message: str, mend: str) -> Problem:
        """Return a problem of the node as a whole."""
        return Problem(code, f"node {self.node.name!r}", message, mend)


def cut_blocks(plan: Plan, sizes: Mapping[str, Sizes]) -> list[Block]:
    """Cut the table into the calls of each node, in declared order."""
    graph, table = plan.graph, plan.table
    bounds = np.searchsorted(table.node, np.arange(len(graph.nodes) + 1, dtype=table.node.dtype)).tolist()
    blocks = []
    for node, first, last in zip(graph.nodes, bounds, bounds[1:], strict=False):
        owner = graph.owner(node.name)
        columns = (table.replica, table.wave, table.position, table.start, table.stop, table.sequence)
        views = [column[first:last] for column in columns]
        blocks.append(Block(node, owner.name, owner.replicas, sizes[node.name], first, *views))  # type: ignore[arg-type]
    return blocks


def locate(blocks: Sequence[Block], number: int) -> tuple[Block, int]:
    """Return the node's calls that hold the call with this number, and its place among them."""
    # The last one that begins there or before: those of which the same is true before it are empty.
    block = blocks[bisect_right(blocks, number, key=lambda block: block.first) - 1]
    return block, number - block.first


def say_more(wrong: np.ndarray[tuple[int], np.dtype[np.bool_]], what: str) -> str:
    """Return how many others are wrong in the same way, as the end of a sentence.

    Args:
        wrong: which are wrong.
        what: the word for one of them.

    >>> say_more(np.array([True, False, True, True]), "call")
    ' (and 2 more calls)'
    """
    others = int(np.count_nonzero(wrong)) - 1
    return f" (and {others} more {what}{'s' if others > 1 else ''})" if others > 0 else ""
