"""The calls of a plan as the driver submits them: found once, so that a step only fills in ObjectRefs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flowsched.backend import Program
from flowsched.graph.topology import topological_order

Range = tuple[int, int]
Submit = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows of a source that calls read: filled in just before the first of them is submitted."""

    slot: int
    source: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Entry:
    """How one call is submitted.

    Attributes:
        call: number of the call.
        node: index of its node.
        made: rows that it makes.
        submit: the actor's method, ready to be called with the head and the fragments.
        tail: the end of its head: the number of the call and the ranges of rows to hand over.
        slices: rows of sources that it is the first to read.
        reads: the slots of the fragments that it reads.
        signal: the slot of its signal; one slot for each range follows.
        objects: number of objects that it returns.
        done_with: slots that nothing submitted later reads.
    """

    call: int
    node: int
    made: int
    submit: Submit
    tail: bytes
    slices: tuple[Slice, ...]
    reads: tuple[int, ...]
    signal: int
    objects: int
    done_with: tuple[int, ...]


@dataclass(frozen=True)
class Submission:
    """A plan as the driver submits it.

    Attributes:
        entries: one for each call, in the plan's sequence.
        slots: number of slots.
        sources: by slot, rows of a source.
        readers: by slot, how often calls read it; 0 for signals, which are kept to the end.
        order: indices of the nodes, producers first.
        rows: by index of the node, the rows that it makes.
        first_calls: by index of a node that has calls and index of the replica, the first call of it there.
    """

    entries: Sequence[Entry]
    slots: int
    sources: Mapping[int, Slice]
    readers: Sequence[int]
    order: Sequence[int]
    rows: Sequence[int]
    first_calls: Mapping[int, Mapping[int, int]]


def make_submission(program: Program, prepare: Callable[[str, int, int], Submit]) -> Submission:
    """Return a plan as the driver submits it.

    Args:
        program: the plan.
        prepare: returns what submits a call: ``prepare(owner, replica, objects)``.
    """
    wanted = _find_ranges(program)
    slots, places = _number_slots(program, wanted)
    sequence = np.argsort(program.plan.table.sequence, kind="stable").tolist()
    readers, last_reader = _find_readers(program, sequence, places, slots)
    sources: dict[int, Slice] = {}
    entries = []
    for call in sequence:
        links = program.links[call]
        keys = [fragment for read in links.reads for fragment in read.fragments]
        reads = tuple(places[key] for key in keys)
        new = {places[key]: Slice(places[key], -1 - key[0], key[1], key[2]) for key in keys if key[0] < 0}
        slices = tuple(piece for slot, piece in new.items() if slot not in sources)
        sources.update(new)
        ranges = wanted.get(call, ())
        numbers = [call, *(number for rows in ranges for number in rows)]
        entry = Entry(
            call=call,
            node=links.node,
            made=links.made,
            submit=prepare(links.owner, links.replica, 1 + len(ranges)),
            tail=np.array(numbers, "<i8").tobytes(),
            slices=slices,
            reads=reads,
            signal=places[call, -1, -1],
            objects=1 + len(ranges),
            done_with=tuple(slot for slot in dict.fromkeys(reads) if last_reader.get(slot) == call),
        )
        entries.append(entry)
    rows = [0] * len(program.numbers)
    first_calls: dict[int, dict[int, int]] = {}
    for entry in entries:
        rows[entry.node] += entry.made
        first_calls.setdefault(entry.node, {}).setdefault(program.links[entry.call].replica, entry.call)
    order = topological_order(program.plan.graph)
    return Submission(entries, slots, sources, readers, order, rows, first_calls)


def _find_ranges(program: Program) -> dict[int, tuple[Range, ...]]:
    """Return, by call, the distinct ranges of its rows that are handed over beside its signal."""
    found: dict[int, dict[Range, None]] = {}
    for producer, start, stop in _all_fragments(program):
        if producer >= 0 and not _is_in_signal(program, producer, start, stop):
            found.setdefault(producer, {})[start, stop] = None
    return {call: tuple(sorted(ranges)) for call, ranges in found.items()}


def _is_in_signal(program: Program, producer: int, start: int, stop: int) -> bool:
    """Whether these rows are the whole of an output of the graph, which the signal brings anyway."""
    links = program.links[producer]
    return links.is_output and (start, stop) == (0, links.made)


def _all_fragments(program: Program) -> Iterator[tuple[int, int, int]]:
    for links in program.links:
        for read in links.reads:
            yield from read.fragments


def _number_slots(
    program: Program, wanted: Mapping[int, Sequence[Range]]
) -> tuple[int, dict[tuple[int, int, int], int]]:
    """Return the number of slots, and the slot of each fragment; the signal of call c is ``c, -1, -1``."""
    places: dict[tuple[int, int, int], int] = {}
    slot = 0
    for call in range(program.plan.table.calls):
        places[call, -1, -1] = slot
        for at, (start, stop) in enumerate(wanted.get(call, ()), slot + 1):
            places[call, start, stop] = at
        slot += 1 + len(wanted.get(call, ()))
    for fragment in _all_fragments(program):
        if fragment in places:
            continue
        if fragment[0] < 0:
            places[fragment] = slot
            slot += 1
        else:
            places[fragment] = places[fragment[0], -1, -1]
    return slot, places


def _find_readers(
    program: Program, sequence: Sequence[int], places: Mapping[tuple[int, int, int], int], slots: int
) -> tuple[list[int], dict[int, int]]:
    """Return how often each slot is read, and the last call in sequence that reads it; signals are not counted."""
    signals = {places[call, -1, -1] for call in range(program.plan.table.calls)}
    readers = [0] * slots
    last: dict[int, int] = {}
    for call in sequence:
        for read in program.links[call].reads:
            for fragment in read.fragments:
                slot = places[fragment]
                if slot not in signals:
                    readers[slot] += 1
                    last[slot] = call
    return readers, last
