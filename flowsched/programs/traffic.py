"""What must go from one rank to another: rows that are read elsewhere, outputs, and the ends of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from flowsched.plan import Plan
from flowsched.plan.table import Int32, Int64
from flowsched.programs.messages import Messages
from flowsched.programs.placement import Placement

_OUTPUT = -1  # in place of a reader: the rows go home


@dataclass(frozen=True, eq=False)
class _Needs:
    """Rows of producers that are needed on a rank, one entry for each reader.

    Attributes:
        producer, start, stop: (needs,) the rows, as in :class:`Messages`.
        receiver: (needs,) the rank.
        reader: (needs,) number of the call that reads them, or ``_OUTPUT``.
    """

    producer: Int64
    start: Int64
    stop: Int64
    receiver: Int32
    reader: Int64


def place_calls(plan: Plan, placement: Placement) -> Int32:
    """Return (calls,) the rank of each call."""
    rank = np.empty(plan.table.calls, np.int32)
    for node in plan:
        ranks = np.array(placement.replicas[plan.graph.owner(node.name).name], np.int32)
        own = slice(node.numbers.start, node.numbers.stop)
        rank[own] = ranks[plan.table.replica[own]]
    return rank


def find_messages(plan: Plan, placement: Placement, rank: Int32) -> Messages:
    """Return the messages: one for all calls of a rank that read the same rows of a producer elsewhere.

    They stand in the order in which they are sent: those of the sources first, by the first call that reads
    them; then by the place of their producer in the sequence, and by the first call that reads them.
    """
    needs = _join([_find_reads(plan, rank), _find_outputs(plan, placement), *_find_ends(plan, rank)])
    sender = _senders(needs.producer, placement, rank)
    return _group(_only(needs, sender != needs.receiver), plan, placement, rank)


def _find_reads(plan: Plan, rank: Int32) -> _Needs:
    """Return every fragment, as what its reader needs."""
    table = plan.table
    widths = np.array([len(node.inputs) for node in plan.graph.nodes])[table.node]
    per_call = np.diff(table.feed[np.concatenate([[0], np.cumsum(widths)])])
    reader = np.repeat(np.arange(table.calls), per_call)
    shift = np.zeros(len(reader), np.int64)
    made = table.producer >= 0
    shift[made] = _first_made(plan)[table.producer[made]]
    return _Needs(
        table.producer, table.fragment_start - shift, table.fragment_stop - shift, rank[reader], reader
    )


def _find_outputs(plan: Plan, placement: Placement) -> _Needs:
    """Return what all calls of output nodes make, needed at home."""
    numbers = [
        np.arange(node.numbers.start, node.numbers.stop) for node in plan if _is_output(plan, node.name)
    ]
    producer = np.concatenate(numbers)
    made = (
        plan.table.stop[producer] // _column(plan, "collapse")[producer] * _column(plan, "expand")[producer]
    )
    stop = made - _first_made(plan)[producer]
    receiver = np.full(len(producer), placement.home, np.int32)
    return _Needs(producer, np.zeros_like(stop), stop, receiver, np.full(len(producer), _OUTPUT))


def _find_ends(plan: Plan, rank: Int32) -> Iterator[_Needs]:
    """Yield, for each node that comes ``after`` another, the last calls of that one on each rank, needed by
    the first calls of the node on each of its replicas."""
    table = plan.table
    for node in plan.graph:
        own = plan[node.name].numbers
        waiting = np.arange(own.start, own.stop)
        waiting = _first_of_each(waiting, table.replica[waiting], table.sequence[waiting])
        for name in dict.fromkeys(node.after):  # it may be named twice
            awaited = plan[name].numbers
            calls = np.arange(awaited.start, awaited.stop)
            last = _first_of_each(calls, rank[calls], -table.sequence[calls])
            producer, reader = np.repeat(last, len(waiting)), np.tile(waiting, len(last))
            none = np.zeros(len(producer), np.int64)
            yield _Needs(producer, none, none, rank[reader], reader)


def _first_of_each(calls: Int64, key: Int32, place: Int64) -> Int64:
    """Return, of the calls with each key, the one whose place is the first."""
    order = np.lexsort((place, key))
    keys = key[order]
    begins = np.ones(len(keys), np.bool_)
    begins[1:] = keys[1:] != keys[:-1]
    first: Int64 = calls[order[begins]]
    return first


def _group(needs: _Needs, plan: Plan, placement: Placement, rank: Int32) -> Messages:
    """Make one message of the needs of each rank for the same rows."""
    sequence = plan.table.sequence
    is_output = needs.reader == _OUTPUT
    read_at = np.full(len(needs.reader), plan.table.calls)  # outputs after all that calls read
    read_at[~is_output] = sequence[needs.reader[~is_output]]
    rows = (needs.receiver, needs.stop, needs.start, needs.producer)
    order = np.lexsort((read_at, *rows))
    begins = np.zeros(len(order), np.bool_)
    begins[:1] = True
    for column in rows:
        begins[1:] |= np.diff(column[order]) != 0
    group = np.cumsum(begins) - 1
    first = order[begins]

    producer = needs.producer[first]
    sent_at = np.full(len(first), -1)
    sent_at[producer >= 0] = sequence[producer[producer >= 0]]
    by_sending = np.lexsort(
        (needs.stop[first], needs.start[first], -producer, needs.receiver[first], read_at[first], sent_at)
    )
    number = np.empty(len(first), np.int64)
    number[by_sending] = np.arange(len(first))
    first = first[by_sending]
    to_home = np.zeros(len(first), np.bool_)
    to_home[number[group[is_output[order]]]] = True

    is_read = ~is_output[order]
    message, reader = number[group][is_read], needs.reader[order][is_read]
    by_message = np.argsort(message, kind="stable")
    return Messages(
        sender=_senders(needs.producer[first], placement, rank),
        receiver=needs.receiver[first],
        producer=needs.producer[first],
        start=needs.start[first],
        stop=needs.stop[first],
        is_output=to_home,
        reader=reader[by_message],
        reader_offsets=np.searchsorted(message[by_message], np.arange(len(first) + 1)),
    )


def _senders(producer: Int64, placement: Placement, rank: Int32) -> Int32:
    """Return (needs,) the rank that has the rows: that of the producer, or home for rows of a source."""
    sender = np.full(len(producer), placement.home, np.int32)
    sender[producer >= 0] = rank[producer[producer >= 0]]
    return sender


def _first_made(plan: Plan) -> Int64:
    """Return (calls,) the first row that each call makes."""
    first: Int64 = plan.table.start // _column(plan, "collapse") * _column(plan, "expand")
    return first


def _column(plan: Plan, name: str) -> Int64:
    """Return (calls,) a field of each call's node."""
    column: Int64 = np.array([getattr(node, name) for node in plan.graph.nodes], np.int64)[plan.table.node]
    return column


def _is_output(plan: Plan, name: str) -> bool:
    return name in plan.graph.outputs


def _join(needs: list[_Needs]) -> _Needs:
    return _Needs(
        producer=np.concatenate([each.producer for each in needs]),
        start=np.concatenate([each.start for each in needs]),
        stop=np.concatenate([each.stop for each in needs]),
        receiver=np.concatenate([each.receiver for each in needs]),
        reader=np.concatenate([each.reader for each in needs]),
    )


def _only(needs: _Needs, kept: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> _Needs:
    return _Needs(
        needs.producer[kept],
        needs.start[kept],
        needs.stop[kept],
        needs.receiver[kept],
        needs.reader[kept],
    )
