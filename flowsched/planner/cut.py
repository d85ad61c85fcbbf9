"""Pass 2, cut: each replica's share into calls, dealt wave by wave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flowsched.graph import Graph
from flowsched.plan.table import Int32, Int64
from flowsched.planner.share import Share


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


def cut_calls(graph: Graph, shares: Sequence[Share]) -> Calls:
    """Cut each share into the fewest calls, whose sizes differ by at most one unit, larger ones first.

    The rows go to the first calls of all replicas, then to the second calls, and so on, so that the first
    wave of a producer can feed all replicas of a consumer.

    Args:
        graph: the graph.
        shares: loads of each node's replicas, by node index.
    """
    sizes = [_deal(share, node.unit, node.batch_size) for node, share in zip(graph, shares, strict=True)]
    offsets = np.cumsum([0, *map(len, sizes)])
    total = int(offsets[-1])
    replica, wave = np.empty(total, np.int32), np.empty(total, np.int32)
    calls = Calls(offsets, replica, wave, np.empty(total, np.int64), np.empty(total, np.int64))
    for index, (share, dealt) in enumerate(zip(shares, sizes, strict=True)):
        if len(dealt):
            own, waves = calls.of(index), -(-len(dealt) // share.used)
            replica[own] = np.tile(np.arange(share.used), waves)[: len(dealt)]
            wave[own] = np.repeat(np.arange(waves), share.used)[: len(dealt)]
            start, stop = calls.start[own], calls.stop[own]
            np.cumsum(dealt, out=stop)
            start[0], start[1:] = 0, stop[:-1]
    return calls


def _deal(share: Share, unit: int, batch_size: int | None) -> Int64:
    """Return the rows of each call, one wave of replicas after the other.

    Only the last wave can lack calls, those of the replicas with the smaller load, which are the last ones.

    >>> _deal(Share(units=2, larger=1, smaller=2), unit=1, batch_size=2).tolist()
    [2, 2, 2, 1]
    """
    most = None if batch_size is None else batch_size // unit
    smaller = _cut_load(share.units, most)
    larger = _cut_load(share.units + 1, most) if share.larger else smaller
    sizes = np.empty((len(larger), share.used), np.int64)
    sizes[:, : share.larger] = larger[:, None]
    sizes[: len(smaller), share.larger :] = smaller[:, None]
    lacking = (len(larger) - len(smaller)) * share.smaller
    return sizes.ravel()[: sizes.size - lacking] * unit


def _cut_load(units: int, most: int | None) -> Int64:
    """Return the sizes of one replica's calls.

    >>> _cut_load(10, 4).tolist()
    [4, 3, 3]
    """
    calls = 1 if most is None else max(1, -(-units // most))
    each, extra = divmod(units, calls)
    sizes = np.full(calls, each, np.int64)
    sizes[:extra] += 1
    return sizes
