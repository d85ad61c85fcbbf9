"""Bounded memory without a controller: who tells whom that what it sent is no longer needed.

A call may start once all calls that have left its node's window are read to the end. Where their readers are on
other ranks, these say so by a signal. Which signals are needed is known from the plan; a plan whose nodes have no
more calls than their windows needs none. No circle can come of it: windows are at least as large as what running
all calls one by one in the plan's sequence keeps, so that whatever a call waits for stands before it there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from flowsched.backend import Program
from flowsched.plan.table import Int32, Int64
from flowsched.programs import Placement
from flowsched.programs.traffic import place_calls


@dataclass(frozen=True, slots=True)
class Credit:
    """A signal from one rank to another that a call has ended, and with it all that stand before it there.

    Attributes:
        sender, receiver: ranks.
        ended: number of the sender's call that must have ended.
        waiting: number of the receiver's call that waits for it.
    """

    sender: int
    receiver: int
    ended: int
    waiting: int


def find_credits(program: Program, placement: Placement, window: Sequence[int]) -> list[Credit]:
    """Return all credits of a plan, in an order that all ranks agree on."""
    gated = [own for own in range(len(window)) if len(program.numbers[own]) > window[own]]
    if not gated:
        return []
    plan = program.plan
    sequence, rank = plan.table.sequence, place_calls(plan, placement)
    needed = [need for own in gated for need in _find_needs(program, own, window[own], rank, placement.ranks)]
    needed.sort(key=lambda need: int(sequence[need[0]]))
    by_sequence = np.argsort(sequence)
    told = np.full((placement.ranks, placement.ranks), -1, np.int64)
    credits = []
    for call, until in needed:
        receiver = int(rank[call])
        for sender in np.flatnonzero(until > told[receiver]).tolist():
            if sender != receiver:
                credits.append(Credit(sender, receiver, int(by_sequence[until[sender]]), call))
        told[receiver] = np.maximum(told[receiver], until)
    return credits


def find_left(program: Program, calls: Sequence[int], window: Sequence[int]) -> dict[int, list[int]]:
    """Return, by call of a rank, the rank's own calls that have newly left its node's window when it starts.

    Args:
        program: the plan.
        calls: numbers of the rank's calls in its order.
        window: calls of each node.
    """
    found: dict[int, list[int]] = {}
    waiting: dict[int, list[int]] = {}
    table = program.plan.table
    for call in calls:
        node = int(table.node[call])
        own = waiting.setdefault(node, [])
        left = [before for before in own if before <= call - window[node]]
        if left:
            found[call] = left
            waiting[node] = [before for before in own if before > call - window[node]]
        waiting[node].append(call)
    return found


def _find_needs(
    program: Program, node: int, window: int, rank: Int32, ranks: int
) -> Iterator[tuple[int, Int64]]:
    """Yield each call of a node that does not fit the first window, and how far each rank must have come in the
    plan's sequence before it may start; -1 where nothing is asked of a rank."""
    numbers, sequence = program.numbers[node], program.plan.table.sequence
    until = np.full((ranks, len(numbers) - window), -1, np.int64)
    for at, call in enumerate(numbers[: len(numbers) - window]):
        for user in (call, *program.links[call].readers):
            until[rank[user], at] = max(until[rank[user], at], sequence[user])
    until = np.maximum.accumulate(until, axis=1)
    for at, call in enumerate(numbers[window:]):
        yield call, until[:, at]
