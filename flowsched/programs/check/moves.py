"""Whether each message is sent once and received once, by the right ranks, and in one order between them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flowsched.check.block import say_more
from flowsched.errors import Problem
from flowsched.plan.table import Int64
from flowsched.programs.check.standing import Standing, first_true
from flowsched.programs.programs import ActionKind


def find_move_problems(standing: Standing) -> Iterator[Problem]:
    """Yield messages that are not sent once and received once, where they say."""
    sends, receives = standing.times(ActionKind.SEND), standing.times(ActionKind.RECV)
    unmatched = list(_find_unmatched(standing, sends, receives))
    yield from unmatched or _find_strays(standing)


def find_order_problems(standing: Standing) -> Iterator[Problem]:
    """Yield messages that are sent before they can be, or received in another order than they are sent."""
    messages = standing.messages
    made = np.flatnonzero(messages.producer >= 0)
    early = standing.run_at[messages.producer[made]] > standing.sent_at[made]
    if early.any():
        number = int(made[first_true(early)])
        call = standing.say_call(int(messages.producer[number]))
        message = f"{call} is run after it{say_more(early, 'message')}"
        yield standing.blame("early-send", int(standing.sent_at[number]), message, f"Send it after {call}")
    order = np.lexsort((standing.sent_at, messages.sender, messages.receiver))
    same = (np.diff(messages.sender[order]) == 0) & (np.diff(messages.receiver[order]) == 0)
    crossed = same & (np.diff(standing.received_at[order]) < 0)
    if crossed.any():
        at = first_true(crossed)
        before, number = standing.say_message(order[at]), int(order[at + 1])
        message = f"{before} is sent before it, and received after it{say_more(crossed, 'message')}"
        mend = "Receive the messages of a rank in the order in which it sends them"
        yield standing.blame("wrong-order", int(standing.received_at[number]), message, mend)


def _find_unmatched(standing: Standing, sends: Int64, receives: Int64) -> Iterator[Problem]:
    for code, wrong, problem, mend in (
        ("unmatched-send", (sends > 0) & (receives == 0), "it is sent, and never received", "Receive it"),
        ("unmatched-receive", (sends == 0) & (receives > 0), "it is received, and never sent", "Send it"),
        ("missing-message", (sends == 0) & (receives == 0), "it is neither sent nor received", "Do both"),
    ):
        if wrong.any():
            number = first_true(wrong)
            message = f"{problem}{say_more(wrong, 'message')}"
            yield Problem(code, standing.say_message(number), message, mend)
    repeated = (sends > 1) | (receives > 1)
    if repeated.any():
        number = first_true(repeated)
        counts = f"it is sent {sends[number]} times and received {receives[number]} times"
        message = f"{counts}{say_more(repeated, 'message')}"
        yield Problem("repeated-message", standing.say_message(number), message, "Send and receive it once")


def _find_strays(standing: Standing) -> Iterator[Problem]:
    """A message goes from the rank that has its rows to another, and both know of it."""
    messages = standing.messages
    holder = standing.holders(messages.producer)
    for name, place, rank, expected in (
        ("sent", standing.sent_at, messages.sender, standing.rank[standing.sent_at]),
        ("received", standing.received_at, messages.receiver, standing.rank[standing.received_at]),
        ("sent", standing.sent_at, messages.sender, holder),
    ):
        strays = rank != expected
        if strays.any():
            number = first_true(strays)
            right = standing.say_rank(expected[number])
            claim = f"{standing.say_message(number)} is {name} by {standing.say_rank(rank[number])}"
            message = f"{claim}, and it should be {right}{say_more(strays, 'message')}"
            yield standing.blame("wrong-rank", int(place[number]), message, f"Let {right} do it")
            return
    within = messages.sender == messages.receiver
    if within.any():
        number = first_true(within)
        message = f"its sender is its receiver{say_more(within, 'message')}"
        mend = "Read on one rank what is made on it, without a message"
        yield standing.blame("wrong-rank", int(standing.sent_at[number]), message, mend)
