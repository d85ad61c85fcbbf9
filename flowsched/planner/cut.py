"""Pass 2, cut: each replica's share into calls, dealt wave by wave."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flowsched.plan.table import Int32, Int64
from flowsched.planner.share import Share


@dataclass(frozen=True, eq=False)
class NodeCalls:
    """The calls of one node in the order of the rows they read, which is wave by wave.

    Attributes:
        replica: (calls,) index of the replica.
        wave: (calls,) the call is the wave-th of its replica.
        start, stop: (calls,) half-open range of the rows it reads.
    """

    replica: Int32
    wave: Int32
    start: Int64
    stop: Int64


def cut_calls(share: Share, unit: int, batch_size: int | None) -> NodeCalls:
    """Cut each share into the fewest calls, whose sizes differ by at most one unit, larger ones first.

    The rows go to the first calls of all replicas, then to the second calls, and so on, so that the first
    wave of a producer can feed all replicas of a consumer.

    Args:
        share: loads in units.
        unit: rows in a unit.
        batch_size: the most rows in a call, at least ``unit``; None for no limit.
    """
    most = None if batch_size is None else batch_size // unit
    larger = _cut_load(share.units + 1, most)
    smaller = _cut_load(share.units, most)
    waves = max(len(larger), len(smaller)) if share.used else 0
    sizes = np.zeros((waves, share.used), np.int64)
    sizes[: len(larger), : share.larger] = larger[:waves, None]
    sizes[: len(smaller), share.larger :] = smaller[:, None]
    wave, replica = np.nonzero(sizes)
    stop = np.cumsum(sizes[wave, replica]) * unit
    start = np.zeros_like(stop)
    start[1:] = stop[:-1]
    return NodeCalls(replica.astype(np.int32), wave.astype(np.int32), start, stop)


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
