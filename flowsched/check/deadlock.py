"""Whether the sequence is one order of all calls in which none waits for a later one.

Where there is such an order, replicas that work off their queues can never wait for each other in a circle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from flowsched.check.block import Block, locate, say_more
from flowsched.check.feeds import Inflow
from flowsched.check.makers import Makers
from flowsched.check.queues import Queues
from flowsched.errors import Problem
from flowsched.plan.table import Int64


def find_sequence_problems(
    blocks: Sequence[Block], lines: Sequence[Queues], inflows: Sequence[Inflow | None], makers: Makers
) -> Iterator[Problem]:
    """Yield what contradicts the sequence: a queue, a fragment or an ``after``."""
    sequence = makers.sequence[: len(makers.sequence) - len(makers.sources)]
    repeated = list(_find_repeated(blocks, sequence))
    yield from repeated
    if repeated:
        return
    yield from _find_queued_before(lines, blocks, sequence)
    last_calls = {block.node.name: int(block.sequence.argmax()) for block in blocks if len(block)}
    for block, inflow in zip(blocks, inflows, strict=True):
        if inflow is not None:
            yield from _find_read_too_early(block, inflow, makers)
        yield from _find_before_its_after(block, makers.blocks, last_calls)


def _find_repeated(blocks: Sequence[Block], sequence: Int64) -> Iterator[Problem]:
    """The places in the sequence are 0 to the number of calls, each once."""
    beyond = (sequence < 0) | (sequence >= len(sequence))
    if beyond.any():
        number, message = (
            int(beyond.argmax()),
            f"but there are {len(sequence)} calls{say_more(beyond, 'call')}",
        )
    else:
        seen = np.zeros(len(sequence), np.bool_)
        seen[sequence] = True
        if seen.all():
            return
        taken = np.bincount(sequence)[sequence] > 1
        first, number = np.flatnonzero(sequence == sequence[taken.argmax()])[:2].tolist()
        other, at = locate(blocks, first)
        message = f"and so has {other.say_call(at)}, while no call has place {(~seen).argmax()}"
    block, at = locate(blocks, number)
    message = f"it has place {sequence[number]} in the sequence, {message}"
    yield block.blame("no-deadlock", at, message, "Give each call a place of its own, counted from 0")


def _find_queued_before(
    lines: Sequence[Queues], blocks: Sequence[Block], sequence: Int64
) -> Iterator[Problem]:
    """Calls that a replica runs earlier come earlier."""
    for queues in lines:
        queued = queues.in_order()
        if queued is None:
            continue
        place = sequence[queued]
        falls = place[1:] < place[:-1]
        ends = np.cumsum(queues.counts)
        falls[ends[(ends > 0) & (ends < len(place))] - 1] = False
        if falls.any():
            k = int(falls.argmax())
            before, before_at = locate(blocks, int(queued[k]))
            block, at = locate(blocks, int(queued[k + 1]))
            message = (
                f"it comes at place {place[k + 1]} of the sequence, but its replica first runs "
                f"{before.say_call(before_at)}, at place {place[k]}{say_more(falls, 'call')}"
            )
            yield block.blame("no-deadlock", at, message, "Let the sequence agree with every queue")


def _find_read_too_early(block: Block, inflow: Inflow, makers: Makers) -> Iterator[Problem]:
    """Calls that make rows come before those that read them."""
    if not any(name in makers.blocks for name in block.node.inputs):
        return
    exist = makers.exist(inflow.producer)
    producer = inflow.producer if exist.all() else np.where(exist, inflow.producer, -1)
    made = makers.sequence[producer]
    begins = inflow.bounds[: -1 : len(block.node.inputs)]
    early = np.maximum.reduceat(made, begins) >= block.sequence
    if early.any():
        at = int(early.argmax())
        last = int(begins[at + 1]) if at + 1 < len(begins) else len(made)
        fragment = int(begins[at]) + int(made[begins[at] : last].argmax())
        rows = int(inflow.start[fragment]), int(inflow.stop[fragment])
        read = makers.say(int(producer[fragment]), *rows)
        message = (
            f"it comes at place {block.sequence[at]} of the sequence, but reads {read}, "
            f"made at place {made[fragment]}{say_more(early, 'call')}"
        )
        yield block.blame(
            "no-deadlock", at, message, "Let the calls that make rows come before those that read"
        )


def _find_before_its_after(
    block: Block, blocks: Mapping[str, Block], last_calls: Mapping[str, int]
) -> Iterator[Problem]:
    """All calls of the nodes that ``after`` names come before the first call of the node."""
    if not len(block):
        return
    first = int(block.sequence.argmin())
    for name in block.node.after:
        if name not in last_calls:
            continue
        other, last = blocks[name], last_calls[name]
        if block.sequence[first] < other.sequence[last]:
            message = (
                f"it comes at place {block.sequence[first]} of the sequence, but after={name!r} "
                f"has {other.say_call(last)} at place {other.sequence[last]}"
            )
            yield block.blame("no-deadlock", first, message, f"Let all calls of {name!r} come before it")
