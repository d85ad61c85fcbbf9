"""Whether all that a call reads, or waits for, is there when it is run, and outputs come home."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from flowsched.check.block import say_more
from flowsched.errors import Problem
from flowsched.plan.table import Int64
from flowsched.programs.check.ends import list_ends
from flowsched.programs.check.standing import Standing, first_true


class Entries(NamedTuple):
    """Own rows of producers and who reads them; rows 0 to 0 stand for the end of the producer.

    Attributes:
        producer, start, stop, reader: (entries,)
    """

    producer: Int64
    start: Int64
    stop: Int64
    reader: Int64


def find_read_problems(standing: Standing) -> Iterator[Problem]:
    """Yield calls that are run without what they read, messages for nothing, and outputs that get lost."""
    messages, reader = standing.messages, standing.messages.reader
    message = standing.message_of_reader
    strays = standing.call_rank[reader] != messages.receiver[message]
    late = standing.run_at[reader] < standing.received_at[message]
    if strays.any():
        at = first_true(strays)
        problem = f"{standing.say_call(reader[at])} is named as its reader and stands on another rank"
        place = int(standing.received_at[message[at]])
        yield standing.blame("wrong-rank", place, f"{problem}{say_more(strays, 'reader')}", "Leave it out")
    elif late.any():
        at = first_true(late)
        problem = f"it reads {standing.say_message(message[at])}, which is received after it"
        place = int(standing.run_at[reader[at]])
        yield standing.blame(
            "late-receive", place, f"{problem}{say_more(late, 'reader')}", "Receive it first"
        )
    yield from _find_unmet_needs(standing)
    yield from _find_output_problems(standing)


def _find_unmet_needs(standing: Standing) -> Iterator[Problem]:
    messages, message = standing.messages, standing.message_of_reader
    fragments, ends = _list_fragments(standing), Entries(*list_ends(standing))
    needed = Entries(*map(np.concatenate, zip(fragments, ends, strict=True)))
    is_here = standing.holders(needed.producer) == standing.call_rank[needed.reader]
    yield from _find_run_too_early(standing, needed, is_here & (needed.producer >= 0))
    apart = Entries(*(column[~is_here] for column in needed))
    brought = Entries(
        messages.producer[message], messages.start[message], messages.stop[message], messages.reader
    )
    needs, brings, entry = _match(apart, brought)
    missing, surplus, repeated = (needs > 0) & (brings == 0), (needs == 0) & (brings > 0), brings > 1
    for ends_only in (False, True):
        own = missing & ((entry.stop == 0) == ends_only)
        if own.any():
            yield _say_missing(standing, Entries(*(column[own] for column in entry)), say_more(own, "need"))
    for code, wrong, problem in (
        ("surplus-rows", surplus, "it is brought {}, which it does not read"),
        ("repeated-rows", repeated, "several messages bring it {}"),
    ):
        if wrong.any():
            at = first_true(wrong)
            text = problem.format(_say_rows(standing, entry, at)) + say_more(wrong, "reader")
            place = int(standing.run_at[entry.reader[at]])
            yield standing.blame(code, place, text, "Let one message bring what it reads")


def _find_run_too_early(standing: Standing, needed: Entries, is_here: NDArray[np.bool_]) -> Iterator[Problem]:
    """What is made on a rank is made before it is read there."""
    producer, reader = needed.producer[is_here], needed.reader[is_here]
    early = standing.run_at[producer] > standing.run_at[reader]
    if early.any():
        at = first_true(early)
        call = standing.say_call(producer[at])
        code = "missing-end" if needed.stop[is_here][at] == 0 else "missing-rows"
        message = f"it needs {call}, which its rank runs after it{say_more(early, 'need')}"
        yield standing.blame(code, int(standing.run_at[reader[at]]), message, f"Run {call} first")


def _say_missing(standing: Standing, missing: Entries, more: str) -> Problem:
    rows = _say_rows(standing, missing, 0)
    code = "missing-rows" if missing.stop[0] else "missing-end"
    message = f"no message brings it {rows}{more}"
    mend = "Send them from the rank that has them" if missing.stop[0] else "Send a signal after its last call"
    return standing.blame(code, int(standing.run_at[missing.reader[0]]), message, mend)


def _say_rows(standing: Standing, entry: Entries, at: int) -> str:
    producer, start, stop = (int(column[at]) for column in entry[:3])
    if producer < 0:
        return f"{standing.plan.graph.sources[-1 - producer]}[{start}:{stop}]"
    call = standing.say_call(producer)
    return f"own rows [{start}:{stop}] of {call}" if stop else f"the end of {call}"


def _list_fragments(standing: Standing) -> Entries:
    """Return every fragment of the plan, in the own rows of its producer."""
    table = standing.plan.table
    widths = np.array([len(node.inputs) for node in standing.plan.graph])[table.node]
    reader = np.repeat(np.repeat(np.arange(table.calls), widths), np.diff(table.feed))
    shift = np.zeros(len(reader), np.int64)
    made = table.producer >= 0
    producer = table.producer[made]
    shift[made] = standing.made(table.start[producer], producer)
    return Entries(table.producer, table.fragment_start - shift, table.fragment_stop - shift, reader)


def _match(needed: Entries, brought: Entries) -> tuple[Int64, Int64, Entries]:
    """Return how often each entry is needed and brought, and these entries, each once."""
    both = Entries(*map(np.concatenate, zip(needed, brought, strict=True)))
    order = np.lexsort(both)
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = np.logical_or.reduce([np.diff(column[order]) != 0 for column in both])
    entry = np.cumsum(is_new) - 1
    is_brought = order >= len(needed.producer)
    count = int(is_new.sum())
    needs = np.bincount(entry[~is_brought], minlength=count)
    brings = np.bincount(entry[is_brought], minlength=count)
    return needs, brings, Entries(*(column[order[is_new]] for column in both))


def _find_output_problems(standing: Standing) -> Iterator[Problem]:
    messages, home = standing.messages, standing.programs.placement.home
    graph, table = standing.plan.graph, standing.plan.table
    due = np.isin(table.node, [graph.index(name) for name in graph.outputs]) & (standing.call_rank != home)
    is_home = (
        messages.is_output & (messages.receiver == home) & (messages.producer >= 0) & (messages.start == 0)
    )
    number = np.flatnonzero(is_home)
    producer = messages.producer[number]
    start, stop = (standing.made(column[producer], producer) for column in (table.start, table.stop))
    whole = messages.stop[number] == stop - start
    brought = np.bincount(producer[whole], minlength=table.calls)
    missing, surplus = due & (brought == 0), (~due & (brought > 0)) | (brought > 1)
    if missing.any():
        at = int(standing.run_at[first_true(missing)])
        message = f"no message brings all that it makes home{say_more(missing, 'call')}"
        yield standing.blame("missing-output", at, message, "Send it home")
    claims = messages.is_output.copy()
    claims[number[whole & ~surplus[producer]]] = False
    unread = (np.diff(messages.reader_offsets) == 0) & ~messages.is_output
    if (claims | unread).any():
        wrong = claims | unread
        message = f"no call reads it and it is no output{say_more(wrong, 'message')}"
        yield standing.blame(
            "unread-message", int(standing.sent_at[first_true(wrong)]), message, "Leave it out"
        )
