"""Whether each call is run once, on its rank, in the order of its replica's queue."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flowsched.check.block import say_more
from flowsched.errors import Problem
from flowsched.programs.check.standing import Standing, first_true
from flowsched.programs.programs import ActionKind


def find_run_problems(standing: Standing) -> Iterator[Problem]:
    """Yield calls that are not run as the plan says."""
    times = standing.times(ActionKind.RUN)
    missing, repeated = times == 0, times > 1
    if missing.any():
        number = first_true(missing)
        rank = standing.say_rank(standing.call_rank[number])
        message = f"no rank runs it{say_more(missing, 'call')}"
        mend = f"Run it on {rank}, which serves its replica"
        yield Problem("missing-call", f"call {standing.say_call(number)}", message, mend)
    if repeated.any():
        number = first_true(repeated)
        message = f"it is run {times[number]} times{say_more(repeated, 'call')}"
        yield Problem("repeated-call", f"call {standing.say_call(number)}", message, "Run it once")
    if missing.any() or repeated.any():
        return
    strays = standing.rank[standing.run_at] != standing.call_rank
    if strays.any():
        number = first_true(strays)
        rank = standing.say_rank(standing.call_rank[number])
        message = f"its replica is on {rank}{say_more(strays, 'call')}"
        yield standing.blame("wrong-rank", int(standing.run_at[number]), message, f"Run it on {rank}")
        return
    yield from _find_out_of_queue(standing)


def _find_out_of_queue(standing: Standing) -> Iterator[Problem]:
    table = standing.plan.table
    queued = np.lexsort((table.position, table.replica, standing.owner))
    owner, replica, place = standing.owner[queued], table.replica[queued], standing.run_at[queued]
    falls = (np.diff(owner) == 0) & (np.diff(replica) == 0) & (np.diff(place) < 0)
    if falls.any():
        at = first_true(falls)
        before = standing.say_call(int(queued[at]))
        message = f"the queue of its replica has {before} before it{say_more(falls, 'call')}"
        yield standing.blame("wrong-queue", int(place[at + 1]), message, f"Run {before} first")
