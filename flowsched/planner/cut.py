"""Pass 2, cut: each replica's share into calls, dealt wave by wave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from flowsched.graph import Graph, Node
from flowsched.plan.table import Int32, Int64
from flowsched.planner.share import Share

BLOCK = 65_536
"""Calls that are worked on at once where there are many: what is needed for them fits a processor's cache."""


@dataclass(frozen=True, eq=False)
class Calls:
    """The calls of all nodes, node by node and inside a node in the order of the rows they read.

    Attributes:
        offsets: (nodes + 1,) node ``i`` has the calls from ``offsets[i]`` to ``offsets[i + 1]``.
        replica: (calls,) index of the replica.
        wave: (calls,) the call is the wave-th of its replica for its node.
        start, stop: (calls,) half-open range of the rows of its node that it reads.
    """

    offsets: Int64
    replica: Int32
    wave: Int32
    start: Int64
    stop: Int64

    def of(self, index: int) -> slice:
        """Return which calls are those of a node."""
        return slice(int(self.offsets[index]), int(self.offsets[index + 1]))


def blocks(calls: slice) -> Iterator[slice]:
    """Divide a range of calls into blocks that are worked on one after the other."""
    for start in range(calls.start, calls.stop, BLOCK):
        yield slice(start, min(start + BLOCK, calls.stop))


def count_calls(graph: Graph, shares: Sequence[Share]) -> list[int]:
    """Return how many calls each node makes, which takes no memory for them."""
    return [
        share.larger * _count_cuts(share.units + 1, _most_units(node))
        + share.smaller * _count_cuts(share.units, _most_units(node))
        for node, share in zip(graph, shares, strict=True)
    ]


def cut_calls(graph: Graph, shares: Sequence[Share]) -> Calls:
    """Cut each share into the fewest calls, whose sizes differ by at most one unit, larger ones first.

    The rows go to the first calls of all replicas, then to the second calls, and so on, so that the first
    wave of a producer can feed all replicas of a consumer.

    Args:
        graph: the graph.
        shares: loads of each node's replicas, by node index.
    """
    most = [_most_units(node) for node in graph]
    counts = count_calls(graph, shares)
    offsets, total = np.cumsum([0, *counts]), sum(counts)
    replica, wave = np.empty(total, np.int32), np.empty(total, np.int32)
    calls = Calls(offsets, replica, wave, np.empty(total, np.int64), np.empty(total, np.int64))
    for index, (node, share, count) in enumerate(zip(graph, shares, counts, strict=True)):
        if not count:
            continue
        own, waves = calls.of(index), -(-count // share.used)
        replica[own] = np.tile(np.arange(share.used, dtype=np.int32), waves)[:count]
        wave[own] = np.repeat(np.arange(waves, dtype=np.int32), share.used)[:count]
        start, stop = calls.start[own], calls.stop[own]
        np.cumsum(_deal(share, most[index])[:count], out=stop)
        stop *= node.unit
        start[0], start[1:] = 0, stop[:-1]
    return calls


def _most_units(node: Node) -> int | None:
    """Return how many units a call of the node may read; None for any number."""
    return None if node.batch_size is None else node.batch_size // node.unit


def _count_cuts(units: int, most: int | None) -> int:
    """Return how many calls of at most ``most`` units one replica makes."""
    return 1 if most is None else max(1, -(-units // most))


def _deal(share: Share, most: int | None) -> Int64:
    """Return the units of all calls, one wave of replicas after the other.

    Only the last wave can lack calls. They are those of the replicas with the smaller load, which come last, so
    that the sizes returned for them stand at the end.

    >>> _deal(Share(units=2, larger=1, smaller=2), most=2).tolist()
    [2, 2, 2, 1, 0, 0]
    """
    smaller = _cut_load(share.units, most)
    larger = _cut_load(share.units + 1, most) if share.larger else smaller
    sizes = np.zeros((len(larger), share.used), np.int64)
    sizes[:, : share.larger] = larger[:, None]
    sizes[: len(smaller), share.larger :] = smaller[:, None]
    return sizes.ravel()


def _cut_load(units: int, most: int | None) -> Int64:
    """Return the sizes of one replica's calls.

    >>> _cut_load(10, 4).tolist()
    [4, 3, 3]
    """
    calls = _count_cuts(units, most)
    each, extra = divmod(units, calls)
    sizes = np.full(calls, each, np.int64)
    sizes[:extra] += 1
    return sizes
