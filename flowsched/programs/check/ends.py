"""What calls wait for that they do not read: the ends of the nodes that theirs comes ``after``."""

from __future__ import annotations

import numpy as np

from flowsched.plan.table import Int64
from flowsched.programs.check.standing import Standing


def list_ends(standing: Standing) -> tuple[Int64, Int64, Int64, Int64]:
    """Return the calls whose end must be known, two columns of zeros, and the calls that must know of it.

    The first call that each replica runs for a node must know of the last that each rank runs for each node
    that it comes ``after``: what a rank runs earlier has then ended too.
    """
    plan = standing.plan
    pairs: set[tuple[int, int]] = set()
    for node in plan:
        for name in plan.graph[node.name].after:
            last: dict[int, int] = {}
            for call in sorted(plan[name].numbers, key=standing.run_at.__getitem__):
                last[int(standing.call_rank[call])] = call
            first: dict[int, int] = {}
            for call in sorted(node.numbers, key=standing.run_at.__getitem__, reverse=True):
                first[int(plan.table.replica[call])] = call
            pairs.update((ended, waiting) for ended in last.values() for waiting in first.values())
    listed = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    none = np.zeros(len(listed), np.int64)
    return listed[:, 0], none, none, listed[:, 1]
