"""Random numbers that are the same on every machine, whatever the version of numpy."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

_MULTIPLIERS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def draw_entropy(seed: int, number: int, name: str) -> int:
    """Return a 64-bit number that depends on all three and on nothing else."""
    digest = hashlib.blake2b(f"{seed}/{number}/{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def row_seeds(entropy: int, start: int, stop: int) -> NDArray[np.uint64]:
    """Return (stop - start,) seeds of rows by SplitMix64, counted from ``entropy``.

    Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
    """
    gamma, first, second = (np.uint64(number) for number in _MULTIPLIERS)
    with np.errstate(over="ignore"):
        state = np.arange(start + 1, stop + 1, dtype=np.uint64)
        state *= gamma
        state += np.uint64(entropy)
        state = (state ^ (state >> np.uint64(30))) * first
        state = (state ^ (state >> np.uint64(27))) * second
    mixed: NDArray[np.uint64] = state ^ (state >> np.uint64(31))
    return mixed
