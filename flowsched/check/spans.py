"""Which rows the calls of a node read: each once, in order, no group cut, no call too large."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flowsched.check.block import Block, say_more
from flowsched.errors import Problem


def find_span_problems(block: Block) -> Iterator[Problem]:
    """Yield what is wrong with the rows that the calls of one node read."""
    yield from _find_impossible_rows(block)
    yield from _find_disorder(block)
    yield from _find_lost_or_repeated(block)
    yield from _find_cut_groups(block)
    yield from _find_oversize(block)


def _find_impossible_rows(block: Block) -> Iterator[Problem]:
    start, stop, rows = block.start, block.stop, block.sizes.read
    empty = stop <= start
    if empty.any():
        at = int(empty.argmax())
        message = (
            f"it reads rows {start[at]} to {stop[at]} (exclusive), which is none{say_more(empty, 'call')}"
        )
        yield block.blame("saturation", at, message, "Leave the call out, or give it rows")
    beyond = (start < 0) | (stop > rows)
    if beyond.any():
        at = int(beyond.argmax())
        message = f"it reads rows {start[at]} to {stop[at]} (exclusive), but the node has rows 0 to {rows}"
        yield block.blame("exactly-once", at, message + say_more(beyond, "call"), f"Keep it below row {rows}")


def _find_disorder(block: Block) -> Iterator[Problem]:
    falls = block.start[1:] < block.start[:-1]
    if falls.any():
        at = int(falls.argmax()) + 1
        message = (
            f"it begins at row {block.start[at]}, but stands after a call that begins at "
            f"row {block.start[at - 1]}{say_more(falls, 'call')}"
        )
        yield block.blame("order", at, message, "Let the calls of a node stand in the order of their rows")


def _find_lost_or_repeated(block: Block) -> Iterator[Problem]:
    rows, start, stop = block.sizes.read, block.start, block.stop
    by_start = None
    if (start[1:] < start[:-1]).any():
        by_start = np.argsort(start, kind="stable")
        start, stop = start[by_start], stop[by_start]
    if not len(start):
        if rows:
            yield block.blame_node(
                "exactly-once", f"none of its {rows} rows is in a call", "Add calls for them"
            )
        return
    due = np.empty_like(start)  # the row at which each call should begin
    due[0], due[1:] = 0, stop[:-1]
    wrong = start != due
    if wrong.any():
        at = int(wrong.argmax())
        number = at if by_start is None else int(by_start[at])
        lost = start[at] > due[at]
        span = f"rows {min(start[at], due[at])} to {max(start[at], due[at])} (exclusive)"
        what = f"{span} are {'in no call' if lost else 'in the calls before it too'}{say_more(wrong, 'call')}"
        yield block.blame("exactly-once", number, what, f"Let it begin at row {due[at]}")
    if stop[-1] < rows:
        at = len(start) - 1 if by_start is None else int(by_start[-1])
        message = f"it is the last, but rows {stop[-1]} to {rows} (exclusive) are in no call"
        yield block.blame("exactly-once", at, message, f"Let it end at row {rows}, or add calls")


def _find_cut_groups(block: Block) -> Iterator[Problem]:
    unit = block.node.unit
    if unit == 1:
        return
    cut = (block.start % unit != 0) | (block.stop % unit != 0)
    if cut.any():
        at = int(cut.argmax())
        message = (
            f"it reads rows {block.start[at]} to {block.stop[at]} (exclusive), which cuts a group of "
            f"{unit} apart{say_more(cut, 'call')}"
        )
        yield block.blame("group", at, message, f"Cut at multiples of {unit}")


def _find_oversize(block: Block) -> Iterator[Problem]:
    cap = block.node.batch_size
    if cap is None:
        return
    size = block.stop - block.start
    over = size > cap
    if over.any():
        at = int(over.argmax())
        message = f"it reads {size[at]} rows, but batch_size is {cap}{say_more(over, 'call')}"
        yield block.blame("cap", at, message, f"Cut it into calls of at most {cap} rows")
