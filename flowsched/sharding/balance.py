"""Which rank takes what of a step, where samples cost differently."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

_FEW_RANKS = 64  # up to which looking at all of them is faster than a heap
_MANY_STEPS = 16  # from which on it is


def balance(costs: NDArray[np.float64], ranks: int) -> NDArray[np.int64]:
    """Return (units,) the rank that each unit goes to, so that ranks cost about the same.

    The dearest goes first, to the rank that costs least so far. The numbers of units still differ by at most one.

    Source: R. L. Graham, "Bounds on multiprocessing timing anomalies", SIAM J. Appl. Math. 17, 1969, with a most
    number for each rank.

    >>> balance(np.array([9.0, 1.0, 8.0, 2.0]), 2)
    array([0, 0, 1, 1])
    """
    owner = np.empty(len(costs), dtype=np.int64)
    least, longer = divmod(len(costs), ranks)
    held = [0] * ranks
    waiting = [(0.0, rank) for rank in range(ranks)]
    for unit in np.argsort(-costs, kind="stable").tolist():
        while True:
            cost, rank = heapq.heappop(waiting)
            if held[rank] < least or longer:
                break
        longer -= held[rank] == least
        owner[unit] = rank
        held[rank] += 1
        if held[rank] <= least:
            heapq.heappush(waiting, (cost + float(costs[unit]), rank))
    return owner


def balance_steps(costs: NDArray[np.float64], ranks: int) -> NDArray[np.int64]:
    """Return (steps, units) the same for many steps at once, whose units all ranks can share equally.

    >>> balance_steps(np.array([[9.0, 1.0, 8.0, 2.0], [1.0, 1.0, 1.0, 3.0]]), 2)
    array([[0, 0, 1, 1],
           [1, 1, 0, 0]])
    """
    steps, units = costs.shape
    if steps < _MANY_STEPS or ranks > _FEW_RANKS:
        return np.array([balance(own, ranks) for own in costs], dtype=np.int64).reshape(steps, units)
    owner = np.empty((steps, units), dtype=np.int64)
    loads, held = np.zeros((ranks, steps)), np.zeros((ranks, steps), dtype=np.int64)
    every = np.arange(steps)
    for unit in np.argsort(-costs, axis=1, kind="stable").T:
        rank = loads.argmin(axis=0)
        owner[every, unit] = rank
        held[rank, every] += 1
        full = held[rank, every] == units // ranks
        loads[rank, every] = np.where(full, np.inf, loads[rank, every] + costs[every, unit])
    return owner
