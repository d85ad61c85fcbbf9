"""In which order an epoch takes samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flowsched.seeds import draw_entropy, row_seeds

_CHUNK = 1 << 17  # numbers that are drawn at a time, to stay within a processor's cache
_PARTS = 256  # into which many numbers are divided before they are sorted, for the same reason


def shuffle(units: int, seed: int, epoch: int) -> NDArray[np.unsignedinteger]:
    """Return (units,) the numbers from 0 in a random order, the same on every machine.

    Each number is sorted with a random key before it in one 64-bit word, which takes 8 bytes a number while it
    runs. Many are first divided by the highest byte of their keys.

    >>> shuffle(5, seed=0, epoch=0).tolist() == shuffle(5, seed=0, epoch=0).tolist()
    True
    """
    bits = np.uint64(max(1, (units - 1).bit_length()))
    number = (np.uint64(1) << bits) - np.uint64(1)
    entropy = draw_entropy(seed, epoch, "order")
    order = np.empty(units, dtype=np.min_scalar_type(max(0, units - 1)))
    if units <= _CHUNK:
        words = _draw(entropy, 0, units, bits)
        words.sort()
        order[:] = words & number
        return order
    chunks = [
        _divide(_draw(entropy, start, min(start + _CHUNK, units), bits)) for start in range(0, units, _CHUNK)
    ]
    start = 0
    for part in range(_PARTS):
        words = np.concatenate([chunk[ends[part] : ends[part + 1]] for ends, chunk in chunks])
        words.sort()
        order[start : start + len(words)] = words & number
        start += len(words)
    return order


def _draw(entropy: int, start: int, stop: int, bits: np.uint64) -> NDArray[np.uint64]:
    """Return for each of these numbers a word of a random key and itself in the lowest bits."""
    words = row_seeds(entropy, start, stop)
    words >>= bits
    words <<= bits
    words |= np.arange(start, stop, dtype=np.uint64)
    return words


def _divide(words: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return (parts + 1,) where the parts of words with one highest byte end, and the words part by part."""
    highest = (words >> np.uint64(56)).astype(np.uint8)
    counts = np.bincount(highest, minlength=_PARTS)
    return np.concatenate([[0], np.cumsum(counts)]), words[np.argsort(highest, kind="stable")]
