"""Whether the sequence is the one that compiling gives, of all those in which no call waits for a later one.

Calls come in the order of the samples that must have been read before them; among equals those of producers
come first, and those of a node in the order of their rows. A replica's queue follows from the sequence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from heapq import heapify, heappop, heappush

import numpy as np

from flowsched.check.block import Block, locate, say_more
from flowsched.check.feeds import Inflow
from flowsched.check.makers import Makers
from flowsched.errors import Problem
from flowsched.plan.table import Int64


def find_order_problems(
    blocks: Sequence[Block], inflows: Sequence[Inflow | None], makers: Makers
) -> Iterator[Problem]:
    """Yield where the sequence of a plan that keeps all other promises is not the one it should be."""
    needed = np.zeros(len(makers.start), np.int64)  # sources, which need nothing, after the calls
    due = np.empty(len(needed) - len(makers.sources), np.int64)
    read_before = {block.owner: np.zeros(0, np.int64) for block in blocks if block.owner != block.node.name}
    ended: dict[str, int] = {}  # samples needed before all calls of a node can have ended
    listed = 0
    for at in _producers_first(blocks):
        block, inflow = blocks[at], inflows[at]
        if inflow is None:
            continue
        own = needed[block.first : block.first + len(block)]
        own[:] = _needed_by_inputs(block, inflow, needed, makers.samples)
        np.maximum(own, max((ended.get(name, 0) for name in block.node.after), default=0), out=own)
        if block.owner in read_before:
            _queue_up(block, own, read_before)
        ended[block.node.name] = int(own.max())
        due[block.first : block.first + len(block)] = np.arange(listed, listed + len(block))
        listed += len(block)
    yield from _find_out_of_turn(blocks, needed, due)


def _producers_first(blocks: Sequence[Block]) -> Iterator[int]:
    """Yield the places of the nodes, each after those it waits for, and else the first declared first."""
    place = {block.node.name: at for at, block in enumerate(blocks)}
    waits = [place.keys() & {*block.node.inputs, *block.node.after} for block in blocks]
    followers: dict[str, list[int]] = {}
    for at, names in enumerate(waits):
        for name in names:
            followers.setdefault(name, []).append(at)
    missing = [len(names) for names in waits]
    ready = [at for at, count in enumerate(missing) if not count]
    heapify(ready)
    while ready:
        at = heappop(ready)
        yield at
        for follower in followers.get(blocks[at].node.name, ()):
            missing[follower] -= 1
            if not missing[follower]:
                heappush(ready, follower)


def _needed_by_inputs(block: Block, inflow: Inflow, needed: Int64, samples: int) -> Int64:
    """Return (calls,) the samples that hold a call's own rows, or that a producer of them needs, if more."""
    each = Fraction(samples, block.sizes.read)
    own: Int64 = -(-block.stop * each.numerator // each.denominator)
    last = inflow.producer[inflow.bounds[1:] - 1].reshape(
        len(block), -1
    )  # the later calls of a node need more
    for producer in last.T:
        np.maximum(own, needed[producer], out=own)
    return own


def _queue_up(block: Block, needed: Int64, read_before: dict[str, Int64]) -> None:
    """Let the calls of a node need what those before them in the queues of several nodes' replicas need."""
    before = read_before[block.owner]
    before = np.pad(before, (0, max(0, int(block.replica.max()) + 1 - len(before))))
    np.maximum(needed, before[block.replica], out=needed)
    np.maximum.accumulate(needed, out=needed)
    before[block.replica] = needed
    read_before[block.owner] = before


def _find_out_of_turn(blocks: Sequence[Block], needed: Int64, due: Int64) -> Iterator[Problem]:
    """Yield the first call that comes before one that should come before it."""
    number = np.empty(len(due), np.int64)
    for block in blocks:
        number[block.sequence] = np.arange(block.first, block.first + len(block))
    samples, turn = needed[number], due[number]
    wrong = (samples[1:] < samples[:-1]) | ((samples[1:] == samples[:-1]) & (turn[1:] < turn[:-1]))
    if wrong.any():
        at = int(wrong.argmax())
        before, before_at = locate(blocks, int(number[at]))
        block, own_at = locate(blocks, int(number[at + 1]))
        why = (
            f"needs {samples[at + 1]} samples, and that one {samples[at]}"
            if samples[at + 1] < samples[at]
            else f"needs {samples[at]} samples as well, and its node comes first"
        )
        message = f"it comes after {before.say_call(before_at)} in the sequence, but {why}"
        mend = "Order calls by the samples that they need, then producers first"
        yield block.blame("determinism", own_at, message + say_more(wrong, "call"), mend)
