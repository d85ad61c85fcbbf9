"""Where an epoch is cut into steps: what all ranks take at the same time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flowsched.sharding.declaration import Mode, Sharding, Tail


def cut_steps(sharding: Sharding, seen: int) -> NDArray[np.int64]:
    """Return (steps + 1,) positions in the epoch's order at which steps begin, counted in units, and the end.

    Each step but the last takes a full batch for each rank, so that an epoch that stops after any step has seen
    a beginning of its order, however many ranks go on from there.

    Args:
        sharding: what is dealt.
        seen: units that the epoch has seen already.
    """
    ranks, most = sharding.sharers, sharding.batch_size // sharding.group
    window, left = ranks * most, sharding.units - seen
    full, rest = divmod(left, window)
    sizes = [window] * full + [rest] * bool(rest)
    if rest and sharding.mode == Mode.EVEN:
        if sharding.tail == Tail.PAD:
            sizes[-1] = window
        elif sharding.tail == Tail.DROP:
            sizes.pop()
        elif rest < ranks and full and most > 1:
            # One unit for each rank is not left for the last step. The one before gives half of its own.
            sizes[-2:] = [ranks * (most // 2), window - ranks * (most // 2) + rest]
    return seen + np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
