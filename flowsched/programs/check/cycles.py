"""Whether ranks that work off their programs can come to wait for each other in a circle.

What each rank waits for does not depend on how fast any of them is: running the programs once, in any order,
without doing any work, shows whether they always come to their ends.
"""

from __future__ import annotations

import numpy as np

from flowsched.errors import Problem
from flowsched.programs.check.standing import Standing
from flowsched.programs.programs import ActionKind


def find_cycle(standing: Standing, rendezvous: bool) -> list[Problem]:
    """Return a problem that names one circle of ranks that wait for each other, or none.

    Each send has its receive, and each call stands behind the receives of what it reads.

    Args:
        standing: the programs.
        rendezvous: whether a send waits for its receiver, and a receive for its sender. Otherwise sends wait
            for nothing, receives are posted, and a call waits for what it reads to have been sent.
    """
    stopped = _meet(standing) if rendezvous else _post(standing)
    offsets = standing.programs.offsets
    stuck = [rank for rank, at in enumerate(stopped) if at < offsets[rank + 1]]
    if not stuck:
        return []
    circle = _follow(standing, stopped, stuck[0], rendezvous)
    said = [
        f"{standing.say_rank(rank)} stands at {standing.say(stopped[rank])} and waits for {standing.say_rank(on)}"
        for rank, on in zip(circle, [*circle[1:], circle[0]], strict=True)
    ]
    shown = said if len(said) <= 6 else [*said[:5], f"({len(said) - 6} more)", said[-1]]
    message = f"ranks wait for each other: {'; '.join(shown)}"
    mend = "Keep the actions of all ranks in one order of the plan's calls"
    if rendezvous:
        mend += ", and the messages of all ranks in one order (plan.programs(rendezvous=True))"
    return [standing.blame("cycle", stopped[circle[0]], message, mend)]


def _post(standing: Standing) -> list[int]:
    """Return the place where each rank stops where sends wait for nothing."""
    programs, messages = standing.programs, standing.messages
    kinds, numbers, rank_of = programs.kinds.tolist(), programs.numbers.tolist(), standing.rank.tolist()
    place: list[int] = programs.offsets[:-1].tolist()
    end: list[int] = programs.offsets[1:].tolist()
    readers = standing.run_at[messages.reader].tolist()
    readers_at = messages.reader_offsets.tolist()
    waits = np.bincount(standing.run_at[messages.reader], minlength=len(kinds)).tolist()
    able = list(range(len(programs)))
    while able:
        rank = able.pop()
        at = place[rank]
        while at < end[rank] and not waits[at]:
            if kinds[at] == ActionKind.SEND:
                message = numbers[at]
                for reader in readers[readers_at[message] : readers_at[message + 1]]:
                    waits[reader] -= 1
                    if not waits[reader] and place[rank_of[reader]] == reader:
                        able.append(rank_of[reader])
            at += 1
        place[rank] = at
    return place


def _meet(standing: Standing) -> list[int]:
    """Return the place where each rank stops where sends and receives wait for each other."""
    programs, messages = standing.programs, standing.messages
    kinds, numbers = programs.kinds.tolist(), programs.numbers.tolist()
    sender, receiver = messages.sender.tolist(), messages.receiver.tolist()
    place: list[int] = programs.offsets[:-1].tolist()
    end: list[int] = programs.offsets[1:].tolist()
    reached = [False] * len(messages)
    able = list(range(len(programs)))
    while able:
        rank = able.pop()
        at = place[rank]
        while at < end[rank]:
            if kinds[at] != ActionKind.RUN:
                message = numbers[at]
                if not reached[message]:
                    reached[message] = True
                    break
                other = sender[message] if kinds[at] == ActionKind.RECV else receiver[message]
                place[other] += 1  # it has waited here
                able.append(other)
            at += 1
        place[rank] = at
    return place


def _follow(standing: Standing, stopped: list[int], rank: int, rendezvous: bool) -> list[int]:
    """Return ranks that wait for each other, from a rank that is stuck on."""
    path: list[int] = []
    while rank not in path:
        path.append(rank)
        rank = _awaited(standing, stopped, rank, rendezvous)
    return path[path.index(rank) :]


def _awaited(standing: Standing, stopped: list[int], rank: int, rendezvous: bool) -> int:
    """Return the rank that a rank which is stuck waits for."""
    messages, at = standing.messages, stopped[rank]
    number = int(standing.programs.numbers[at])
    if rendezvous:
        is_receive = standing.programs.kinds[at] == ActionKind.RECV
        return int(messages.sender[number] if is_receive else messages.receiver[number])
    for message in messages.read_by(number):
        sender = int(messages.sender[message])
        if standing.sent_at[message] >= stopped[sender]:
            return sender
    return rank
