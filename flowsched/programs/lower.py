"""Lowering: from a plan and a placement to the actions of every rank.

Each rank follows the plan's one sequence of all calls: it receives what a call reads, runs the call, and sends
what other ranks read of it. That no rank ever waits for itself in a circle follows from that one sequence.
"""

from __future__ import annotations

import numpy as np

from flowsched.plan import Plan
from flowsched.plan.table import Int64
from flowsched.programs.messages import Messages
from flowsched.programs.placement import Placement
from flowsched.programs.programs import ActionKind, Programs
from flowsched.programs.traffic import find_messages, place_calls

_BEFORE_ALL = -1  # a place in the sequence, before the first call


def lower_plan(plan: Plan, placement: Placement, *, rendezvous: bool = False) -> Programs:
    """Return one program for each rank. Takes time near-linear in calls and fragments.

    Args:
        plan: the plan.
        placement: which rank serves which replica.
        rendezvous: keep the messages of every rank in one order of all messages, so that each send may wait
            for its receiver. Otherwise a rank receives what a call reads just before it runs the call, and
            sends must not wait.

    Raises:
        PlacementError: the placement is that of another graph.
    """
    placement.check(plan.graph)
    sequence = plan.table.sequence
    rank = place_calls(plan, placement)
    messages = find_messages(plan, placement, rank)
    sent = np.full(len(messages), _BEFORE_ALL, np.int64)
    made = messages.producer >= 0
    sent[made] = sequence[messages.producer[made]]
    received = sent if rendezvous else _find_due(messages, sequence, sent)

    receives, runs, sends = np.arange(len(messages)), np.arange(len(sequence)), np.arange(len(messages))
    kind = np.repeat(np.array(ActionKind, np.int8), [len(receives), len(runs), len(sends)])
    number = np.concatenate([receives, runs, sends])
    process = np.concatenate([messages.receiver, rank, messages.sender])
    place = np.concatenate([received, sequence, sent])
    # Around a call: RECV, RUN, SEND; under rendezvous RUN, then receives and sends as messages are numbered.
    turn = np.where(kind == ActionKind.RECV, ActionKind.SEND, kind) if rendezvous else kind
    order = np.lexsort((number, turn, place, process))
    offsets = np.searchsorted(process[order], np.arange(placement.processes + 1))
    return Programs(plan, placement, rendezvous, messages, kind[order], number[order], offsets)


def _find_due(messages: Messages, sequence: Int64, sent: Int64) -> Int64:
    """Return (messages,) the place in the sequence before which each message is received at its receiver.

    That is the place of the first call that reads it, or, between two ranks, of the first that reads any
    message sent after it: receives are posted in the order of the sends.
    """
    due = sent.copy()  # outputs that no call reads are received where their producers stand
    is_read = np.diff(messages.reader_offsets) > 0
    due[is_read] = sequence[messages.reader[messages.reader_offsets[:-1][is_read]]]
    pairs = np.lexsort((messages.sender, messages.receiver))  # stable: inside a pair as they are sent
    if not len(pairs):
        return due
    changes = np.diff(messages.receiver[pairs]) | np.diff(messages.sender[pairs])
    pair = np.concatenate([[0], np.cumsum(changes != 0)])
    lift = pair * (len(sequence) + 1)  # so that the least from the end on never reaches into another pair
    due[pairs] = np.minimum.accumulate((due[pairs] + lift)[::-1])[::-1] - lift
    return due
