"""How many rows each replica of a node gets, and in how many calls."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flowsched.check.block import Block, say_more
from flowsched.check.dealing import Dealt
from flowsched.errors import Problem
from flowsched.plan.table import Int32, Int64


def find_load_problems(block: Block, dealt: Dealt) -> Iterator[Problem]:
    """Yield idle replicas, uneven loads, and loads cut into too many or uneven calls."""
    if not len(block):
        return
    size = (block.stop - block.start)[dealt.order]
    loads = np.add.reduceat(size, dealt.offsets)
    yield from _find_idle(block, dealt)
    yield from _find_uneven_loads(block, dealt, loads)
    yield from _find_surplus_calls(block, dealt, loads)
    spread = np.maximum.reduceat(size, dealt.offsets) - np.minimum.reduceat(size, dealt.offsets)
    yield from _find_uneven_calls(block, dealt.used, spread)


def _find_idle(block: Block, dealt: Dealt) -> Iterator[Problem]:
    """With fewer units than replicas each goes to another replica; with more, no replica is idle."""
    units = block.sizes.read // block.node.unit
    idle = block.replicas - len(dealt.used)
    if idle > max(0, block.replicas - units):
        at = _first_idle(dealt)
        message = (
            f"{idle} of its {block.replicas} replicas are idle, the first of them replica {at}, though its "
            f"{units} {_units(block)} are enough for {min(units, block.replicas)}"
        )
        yield block.blame_node("saturation", message, f"Give replica {at} work")


def _first_idle(dealt: Dealt) -> int:
    in_turn = dealt.used == np.arange(len(dealt.used))
    return len(in_turn) if in_turn.all() else int(in_turn.argmin())


def _find_uneven_loads(block: Block, dealt: Dealt, loads: Int64) -> Iterator[Problem]:
    unit, units = block.node.unit, block.sizes.read // block.node.unit
    more, most = int(dealt.used[loads.argmax()]), int(loads.max())
    less, least = int(dealt.used[loads.argmin()]), int(loads.min())
    if len(dealt.used) < block.replicas:
        less, least = _first_idle(dealt), 0
    if units >= block.replicas and most - least > unit:
        message = (
            f"replica {more} gets {most} rows, but replica {less} gets {least}; "
            f"with {units} {_units(block)} for {block.replicas} replicas, loads differ by at most {unit}"
        )
        mend = f"Move rows from replica {more} to replica {less}"
        yield block.blame_node("balance", message, mend)


def _find_surplus_calls(block: Block, dealt: Dealt, loads: Int64) -> Iterator[Problem]:
    unit, cap = block.node.unit, block.node.batch_size
    most = int(loads.max()) if cap is None else cap // unit * unit
    fewest = -(-loads // max(most, 1))
    surplus = dealt.counts > fewest
    if surplus.any():
        at = int(surplus.argmax())
        message = (
            f"replica {dealt.used[at]} has {dealt.counts[at]} calls for {loads[at]} rows, where {fewest[at]} "
            f"will do with batch_size {cap}{say_more(surplus, 'replica')}"
        )
        yield block.blame_node("fewest-calls", message, f"Cut its rows into {fewest[at]} calls")


def _find_uneven_calls(block: Block, used: Int32, spread: Int64) -> Iterator[Problem]:
    uneven = spread > block.node.unit
    if uneven.any():
        at = int(uneven.argmax())
        message = (
            f"the calls of replica {used[at]} differ by {spread[at]} rows, at most {block.node.unit} is "
            f"allowed{say_more(uneven, 'replica')}"
        )
        yield block.blame_node("even-calls", message, "Move rows from its larger calls to its smaller ones")


def _units(block: Block) -> str:
    return "rows" if block.node.unit == 1 else f"groups of {block.node.unit} rows"
