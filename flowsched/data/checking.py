"""What ranks have read, compared: which samples are repeated, which are missing, and who has more batches.

It knows what was read and nothing of the rule by which it should have been dealt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RankRows:
    """What one rank has read.

    Attributes:
        keys: (rows,) which sample each row is: its id, or any number that is the same for the same sample.
        sizes: (batches,) how many rows each batch has.
        real: (rows,) False for rows that are there to pad and carry no weight.
    """

    keys: Ids
    sizes: Ids
    real: NDArray[np.bool_]

    @property
    def rows(self) -> int:
        """How many rows count."""
        return int(np.count_nonzero(self.real))

    @property
    def padding(self) -> int:
        """How many rows pad, and carry no weight."""
        return len(self.real) - self.rows

    @property
    def batches(self) -> int:
        """How many batches it has."""
        return len(self.sizes)

    @property
    def empty(self) -> int:
        """How many of them hold no row."""
        return int(np.count_nonzero(self.sizes == 0))


@dataclass(frozen=True, eq=False)
class Findings:
    """What is wrong with what ranks have read, if anything.

    Attributes:
        ranks: what each has read.
        expected: how many samples there are; None where nobody knows.
        named: whether keys are the ids of samples, from 0 to ``expected``. Otherwise they only tell samples apart.
        repeated: (n,) keys of samples that count more than once, the smallest first.
        times: (n,) how often each counts.
        missing: (m,) ids of samples that no rank has; empty where samples have no ids.
        unknown: (k,) keys that are no id of the data.
        unread: how many samples no rank has; None where nobody knows.
    """

    ranks: tuple[RankRows, ...]
    expected: int | None
    named: bool
    repeated: Ids
    times: Ids
    missing: Ids
    unknown: Ids
    unread: int | None

    @property
    def exact(self) -> bool:
        """Whether each sample counts once, as far as can be known."""
        return not (len(self.repeated) or len(self.unknown) or self.unread)

    @property
    def even(self) -> bool:
        """Whether all ranks have the same number of batches, as collectives need."""
        return len({rank.batches for rank in self.ranks}) <= 1

    @property
    def rows(self) -> int:
        """How many rows count, on all ranks together."""
        return sum(rank.rows for rank in self.ranks)

    @property
    def surplus(self) -> int:
        """How many of them are there again."""
        return int(np.sum(self.times - 1))

    @property
    def everything(self) -> bool:
        """Whether all ranks have all the same samples, once each: nothing is shared out."""
        several, together = len(self.ranks) > 1, len(self.repeated)
        alike = all(rank.rows == together for rank in self.ranks)
        return several and together > 0 and alike and bool(np.all(self.times == len(self.ranks)))

    def holders(self, key: int) -> dict[int, int]:
        """Return how often each rank has a sample; ranks that do not are left out."""
        times = [int(np.count_nonzero(rank.keys[rank.real] == key)) for rank in self.ranks]
        return {rank: count for rank, count in enumerate(times) if count}

    def places(self, key: int, most: int = 4) -> list[tuple[int, int, int]]:
        """Return where a sample is read, as rank, batch and row in the batch, at most so many places."""
        found: list[tuple[int, int, int]] = []
        for number, rank in enumerate(self.ranks):
            starts = np.cumsum(rank.sizes) - rank.sizes
            for at in np.flatnonzero((rank.keys == key) & rank.real)[: most - len(found)].tolist():
                batch = int(np.searchsorted(starts, at, side="right")) - 1
                found.append((number, batch, at - int(starts[batch])))
        return found


def compare(ranks: Sequence[RankRows], expected: int | None, *, named: bool = True) -> Findings:
    """Compare what ranks have read.

    Args:
        ranks: what each has read.
        expected: how many samples there are; None where nobody knows.
        named: whether keys are the ids of samples.

    Examples:
        >>> two, real = np.array([2]), np.array([True, True])
        >>> found = compare([RankRows(np.array(ids), two, real) for ids in ([0, 1], [1, 4])], 4)
        >>> found.repeated, found.missing, found.unknown, found.exact
        (array([1]), array([2, 3]), array([4]), False)
    """
    counted = np.concatenate([np.empty(0, np.int64), *(rank.keys[rank.real] for rank in ranks)])
    keys, times = np.unique(counted, return_counts=True)
    is_known = np.full(len(keys), True)
    missing, unread = np.empty(0, np.int64), None
    if expected is not None and named:
        is_known = (keys >= 0) & (keys < expected)
        has = np.full(expected, False)
        has[keys[is_known]] = True
        missing = np.flatnonzero(~has).astype(np.int64)
        unread = len(missing)
    elif expected is not None:
        unread = max(0, expected - len(keys))
    again = times > 1
    return Findings(
        tuple(ranks),
        expected,
        named,
        keys[again],
        times[again].astype(np.int64),
        missing,
        keys[~is_known],
        unread,
    )
