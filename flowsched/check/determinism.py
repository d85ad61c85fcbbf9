"""Whether the choices that the promises leave open were made in the one fixed way.

Which replica gets the odd row, and which of its calls is the larger one, would else be up to chance, and
the same graph and sizes would not give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flowsched.check.block import Block, say_more
from flowsched.check.dealing import Dealt
from flowsched.errors import Problem


def find_choice_problems(block: Block, dealt: Dealt) -> Iterator[Problem]:
    """Yield where the calls of a node, dealt wave by wave, could have been dealt in another order."""
    if len(block):
        yield from _find_skipped_replicas(block)
        yield from _find_late_larger_loads(block, dealt)
        yield from _find_late_larger_calls(block, dealt)


def _find_skipped_replicas(block: Block) -> Iterator[Problem]:
    due = np.zeros_like(block.replica)
    due[1:] = np.where(block.wave[1:] == block.wave[:-1], block.replica[:-1] + 1, 0)
    wrong = block.replica != due
    if wrong.any():
        at = int(wrong.argmax())
        message = (
            f"it is on replica {block.replica[at]}, but wave {block.wave[at]} has come to replica {due[at]}"
            f"{say_more(wrong, 'call')}"
        )
        yield block.blame("determinism", at, message, "Deal each wave to replicas 0, 1, 2, ... in turn")


def _find_late_larger_loads(block: Block, dealt: Dealt) -> Iterator[Problem]:
    size = (block.stop - block.start)[dealt.order]
    used = dealt.used
    loads = np.add.reduceat(size, dealt.offsets)
    rises = loads[1:] > loads[:-1]
    if rises.any():
        k = int(rises.argmax())
        message = (
            f"replica {used[k + 1]} gets {loads[k + 1]} rows, more than the {loads[k]} of replica {used[k]}"
        )
        mend = "Give the larger loads to the first replicas"
        yield block.blame_node("determinism", message + say_more(rises, "replica"), mend)


def _find_late_larger_calls(block: Block, dealt: Dealt) -> Iterator[Problem]:
    size = (block.stop - block.start)[dealt.order]
    rises = dealt.inner(size[1:] > size[:-1])
    if len(rises):
        k = int(rises[0])
        message = f"it reads {size[k]} rows, more than the {size[k - 1]} of its replica's call before it"
        mend = "Let the larger calls of a replica come first"
        yield block.blame("determinism", int(dealt.order[k]), message, mend)
