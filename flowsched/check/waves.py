"""Whether rows are dealt wave by wave: first to the first calls of all replicas, then to the second ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flowsched.check.block import Block, say_more
from flowsched.check.dealing import Dealt
from flowsched.errors import Problem


def find_wave_problems(block: Block, dealt: Dealt) -> Iterator[Problem]:
    """Yield wrong wave numbers, waves that read rows out of turn, and queues that turn waves round."""
    wave = block.wave[dealt.order]
    due = np.arange(len(block)) - np.repeat(dealt.offsets, dealt.counts)
    wrong = wave != due
    if wrong.any():
        k = int(wrong.argmax())
        at = int(dealt.order[k])
        message = f"it says wave {wave[k]}, but {due[k]} calls of its replica read earlier rows of the node"
        yield block.blame("waves", at, message + say_more(wrong, "call"), f"Give it wave {due[k]}")
    falls = block.wave[1:] < block.wave[:-1]
    if falls.any():
        at = int(falls.argmax()) + 1
        message = (
            f"it is of wave {block.wave[at]}, but reads later rows than "
            f"{block.say_call(at - 1)} of wave {block.wave[at - 1]}{say_more(falls, 'call')}"
        )
        yield block.blame("waves", at, message, "Deal the rows to all replicas in turn, one call each")
    position = block.position[dealt.order]
    turned = dealt.inner(position[1:] <= position[:-1])
    if len(turned):
        k = int(turned[0])
        at, before = int(dealt.order[k]), int(dealt.order[k - 1])
        message = f"its replica runs it before {block.say_call(before)}, which is of an earlier wave"
        yield block.blame("waves", at, message, "Let the replica run its calls for a node wave by wave")
