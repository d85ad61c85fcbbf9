"""The calls of a plan as the driver submits them: found once, so that a step only fills in ObjectRefs."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flowsched.backend import Program
from flowsched_ray.ranges import Range, all_fragments, find_ranges
from flowsched_ray.told import FirstCalls, find_first_calls

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
        submit_next: likewise with the fragments alone, where the call comes as it did in the step before.
        tail: the end of its head: the number of the call and the ranges of rows that it hands over.
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
    submit_next: Submit | None
    tail: bytes
    slices: tuple[Slice, ...]
    reads: tuple[int, ...]
    signal: int
    objects: int
    done_with: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Submission:
    """A plan as the driver submits it.

    Attributes:
        entries: one for each call, in the plan's sequence.
        slots: number of slots.
        sources: by slot, rows of a source.
        readers: by slot, how often calls read it.
        first_calls: the first call of each node in each replica.
        repeats: whether a step may be submitted as one that follows another of the same submission.
    """

    entries: Sequence[Entry]
    slots: int
    sources: Mapping[int, Slice]
    readers: Sequence[int]
    first_calls: FirstCalls
    repeats: bool


def make_submission(
    program: Program,
    prepare: Callable[[str, int, int], tuple[Submit, Submit | None]],
    small: Container[int] = (),
) -> Submission:
    """Return a plan as the driver submits it.

    Args:
        program: the plan.
        prepare: returns :class:`Entry`'s two ways to submit a call: ``prepare(owner, replica, objects)``.
        small: indices of nodes whose outputs are so small that a signal carries one of the ranges.
    """
    wanted = find_ranges(program)
    carried = _take_carried(program, wanted, small)
    slots, places = _number_slots(program, wanted, carried)
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
        numbers = [call, *carried.get(call, (0, 0)), *(number for rows in ranges for number in rows)]
        submit, submit_next = prepare(links.owner, links.replica, 1 + len(ranges))
        entry = Entry(
            call=call,
            node=links.node,
            made=links.made,
            submit=submit,
            submit_next=submit_next,
            tail=np.array(numbers, "<i8").tobytes(),
            slices=slices,
            reads=reads,
            signal=places[call, -1, -1],
            objects=1 + len(ranges),
            done_with=tuple(slot for slot in dict.fromkeys(reads) if last_reader.get(slot) == call),
        )
        entries.append(entry)
    repeats = all(entry.submit_next is not None for entry in entries)
    return Submission(entries, slots, sources, readers, find_first_calls(program), repeats)


def _take_carried(
    program: Program, wanted: dict[int, list[Range]], small: Container[int]
) -> dict[int, Range]:
    """Return, by call, the rows that its signal carries, and take them out of what it returns beside.

    The signals of an output of the graph carry all its rows, since they are read by the driver anyway.
    """
    carried: dict[int, Range] = {}
    for call, links in enumerate(program.links):
        ranges = wanted.get(call, [])
        if links.is_output:
            carried[call] = (0, links.made)
        elif links.node in small and ranges:
            carried[call] = ranges[0]
        if carried.get(call) in ranges:
            ranges.remove(carried[call])
    return carried


def _number_slots(
    program: Program, wanted: Mapping[int, Sequence[Range]], carried: Mapping[int, Range]
) -> tuple[int, dict[tuple[int, int, int], int]]:
    """Return the number of slots, and the slot of each fragment; the signal of call c is ``c, -1, -1``."""
    places: dict[tuple[int, int, int], int] = {}
    slot = 0
    for call in range(program.plan.table.calls):
        places[call, -1, -1] = slot
        if call in carried:
            places[call, *carried[call]] = slot
        slot += 1
        for start, stop in wanted.get(call, ()):
            places[call, start, stop] = slot
            slot += 1
    for fragment in all_fragments(program):
        if fragment not in places:
            places[fragment] = slot
            slot += 1
    return slot, places


def _find_readers(
    program: Program, sequence: Sequence[int], places: Mapping[tuple[int, int, int], int], slots: int
) -> tuple[list[int], dict[int, int]]:
    """Return how often each slot is read, and the last call in sequence that reads it, where it is no signal."""
    signals = {places[call, -1, -1] for call in range(program.plan.table.calls)}
    readers = [0] * slots
    last: dict[int, int] = {}
    for call in sequence:
        for read in program.links[call].reads:
            for fragment in read.fragments:
                slot = places[fragment]
                readers[slot] += 1
                if slot not in signals:
                    last[slot] = call
    return readers, last
