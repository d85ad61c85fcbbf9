"""What each call reads: its own rows of every input, each from the call that makes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flowsched.check.block import Block, say_more
from flowsched.check.makers import Makers
from flowsched.errors import Problem
from flowsched.plan import Table
from flowsched.plan.table import Int64

Marks = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Inflow:
    """The fragments of one node's calls; the feeds of a call are consecutive, one for each input.

    Attributes:
        bounds: (feeds + 1,) where the fragments of each feed begin and end; no feed is empty.
        producer, start, stop: (fragments,) as in the table.
    """

    bounds: Int64
    producer: Int64
    start: Int64
    stop: Int64

    def inner(self, of_neighbours: Marks) -> Marks:
        """Unmark in place the pairs of a fragment and the next one that belong to two feeds."""
        of_neighbours[self.bounds[1:-1] - 1] = False
        return of_neighbours

    def feed_of(self, fragment: int) -> int:
        """Return the feed that holds a fragment."""
        return int(np.searchsorted(self.bounds, fragment, side="right")) - 1


def find_offset_problems(table: Table, blocks: Sequence[Block]) -> Iterator[Problem]:
    """Yield what keeps the fragments from being told to the calls."""
    feed, fragments = table.feed, table.fragments
    feeds = sum(len(block) * len(block.node.inputs) for block in blocks)
    mend = "Let the offsets rise from 0 to the number of fragments, one step for each call and input"
    if len(feed) != feeds + 1:
        message = f"it has {len(feed)} offsets, but {feeds} inputs of calls need {feeds + 1}"
        yield Problem("table", "column 'feed'", message, mend)
    elif feed[0] != 0 or feed[-1] != fragments:
        message = f"it goes from {feed[0]} to {feed[-1]}, but there are fragments 0 to {fragments}"
        yield Problem("table", "column 'feed'", message, mend)
    for block, offsets in _offsets(table, blocks):
        none = offsets[1:] <= offsets[:-1]
        if none.any():
            at, place = divmod(int(none.argmax()), len(block.node.inputs))
            message = (
                f"it has {np.diff(offsets)[none.argmax()]} fragments of {block.node.inputs[place]!r}"
                f"{say_more(none, 'input')}"
            )
            yield block.blame("alignment", at, message, "Give it a fragment of each of its inputs")


def cut_inflows(table: Table, blocks: Sequence[Block]) -> list[Inflow | None]:
    """Return the fragments of each node's calls; None where they cannot be told apart."""
    inflows: list[Inflow | None] = [None for _ in blocks]
    for place, (block, offsets) in enumerate(_offsets(table, blocks)):
        inside = offsets[0] >= 0 and offsets[-1] <= table.fragments
        if len(block) and inside and (offsets[1:] > offsets[:-1]).all():
            own = slice(int(offsets[0]), int(offsets[-1]))
            columns = table.producer[own], table.fragment_start[own], table.fragment_stop[own]
            inflows[place] = Inflow(offsets - offsets[0], *columns)
    return inflows


def find_feed_problems(block: Block, inflow: Inflow, makers: Makers) -> Iterator[Problem]:
    """Yield where the calls of one node do not read their own rows from the calls that make them."""
    yield from _find_misaligned(block, inflow)
    yield from _find_broken_rows(block, inflow, makers)
    strangers = list(_find_strangers(block, inflow, makers))
    yield from strangers
    if not strangers:
        yield from _find_unmade_rows(block, inflow, makers)
    yield from _find_split(block, inflow, makers)


def _offsets(table: Table, blocks: Sequence[Block]) -> Iterator[tuple[Block, Int64]]:
    """Yield the offsets of each node's feeds, as far as there are enough of them."""
    first = 0
    for block in blocks:
        last = first + len(block) * len(block.node.inputs)
        if last < len(table.feed):
            yield block, table.feed[first : last + 1]
        first = last


def _find_misaligned(block: Block, inflow: Inflow) -> Iterator[Problem]:
    """The first fragment of an input begins at the call's first row, the last one ends at its last row."""
    width = len(block.node.inputs)
    for place, (name, times) in enumerate(zip(block.node.inputs, block.sizes.times, strict=True)):
        first, last = inflow.bounds[place:-1:width], inflow.bounds[place + 1 :: width] - 1
        start = block.start if times == 1 else block.start // times
        stop = block.stop if times == 1 else (block.stop - 1) // times + 1
        wrong = (inflow.start[first] != start) | (inflow.stop[last] != stop)
        if wrong.any():
            at = int(wrong.argmax())
            begins, ends = inflow.start[first[at]], inflow.stop[last[at]]
            message = (
                f"it should read rows {start[at]} to {stop[at]} (exclusive) of {name!r}, but reads {begins} to "
                f"{ends}{say_more(wrong, 'call')}"
            )
            mend = f"Let its fragments of {name!r} cover rows {start[at]} to {stop[at]}"
            yield block.blame("alignment", at, message, mend)


def _find_broken_rows(block: Block, inflow: Inflow, makers: Makers) -> Iterator[Problem]:
    """Fragments hold rows, and each goes on where the one before it ends."""
    broken = np.empty(len(inflow.start), np.bool_)
    broken[0] = False
    broken[1:] = inflow.inner(inflow.start[1:] != inflow.stop[:-1])
    broken |= inflow.stop <= inflow.start
    if broken.any():
        at = int(broken.argmax())
        due = inflow.start[at] if at in inflow.bounds else inflow.stop[at - 1]
        message = f"{_say(inflow, makers, at)} should begin at row {due} and hold rows{_more(broken)}"
        yield _blame(
            block, inflow, "alignment", at, message, "Let the fragments of an input follow on one another"
        )


def _find_strangers(block: Block, inflow: Inflow, makers: Makers) -> Iterator[Problem]:
    """Each fragment is made by a call of the node, or the source, that the input names."""
    ranges = np.array([makers.numbers_of(name) for name in block.node.inputs], np.int64)
    if len(ranges) == 1:
        first, last = ranges[0]
    else:
        counts = np.diff(inflow.bounds)
        first, last = (np.repeat(np.tile(ends, len(block)), counts) for ends in ranges.T)
    wrong = (inflow.producer < first) | (inflow.producer >= last)
    if wrong.any():
        at = int(wrong.argmax())
        name = block.node.inputs[inflow.feed_of(at) % len(ranges)]
        message = f"its input {name!r} has the fragment {_say(inflow, makers, at)}{_more(wrong)}"
        yield _blame(block, inflow, "fragments", at, message, f"Name a producer of {name!r}")


def _find_unmade_rows(block: Block, inflow: Inflow, makers: Makers) -> Iterator[Problem]:
    """Each fragment lies inside the rows that its producer makes."""
    start, stop = makers.start[inflow.producer], makers.stop[inflow.producer]
    outside = (inflow.start < start) | (inflow.stop > stop)
    if outside.any():
        at = int(outside.argmax())
        made = f"which makes rows {start[at]} to {stop[at]} (exclusive)"
        message = f"it reads {_say(inflow, makers, at)}, {made}{_more(outside)}"
        yield _blame(block, inflow, "fragments", at, message, "Name the producer that makes these rows")


def _find_split(block: Block, inflow: Inflow, makers: Makers) -> Iterator[Problem]:
    """What a call reads of one producer is one fragment."""
    split = inflow.inner(inflow.producer[1:] == inflow.producer[:-1])
    if split.any():
        at = int(split.argmax()) + 1
        message = f"{_say(inflow, makers, at - 1)} and {_say(inflow, makers, at)} come from one producer"
        yield _blame(block, inflow, "fragments", at, message + _more(split), "Join them into one fragment")


def _say(inflow: Inflow, makers: Makers, fragment: int) -> str:
    return makers.say(*(int(column[fragment]) for column in (inflow.producer, inflow.start, inflow.stop)))


def _more(wrong: Marks) -> str:
    return say_more(wrong, "fragment")


def _blame(block: Block, inflow: Inflow, code: str, fragment: int, message: str, mend: str) -> Problem:
    return block.blame(code, inflow.feed_of(fragment) // len(block.node.inputs), message, mend)
