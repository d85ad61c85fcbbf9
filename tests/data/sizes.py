"""Loaders of whatever sizes, for property tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st
from torch.utils.data import IterableDataset


@dataclass(frozen=True)
class Sizes:
    """What the loaders of all ranks have in common."""

    samples: int
    ranks: int
    batch_size: int
    mode: str
    group: int
    shuffle: bool
    seed: int
    lengths: list[int] | None

    def of(self, rank: int) -> dict[str, Any]:
        """The arguments of one rank's loader, but for its data."""
        return {
            name: getattr(self, name)
            for name in ("ranks", "batch_size", "mode", "group", "shuffle", "seed", "lengths")
        } | {"rank": rank}

    def resized(self, ranks: int, batch_size: int) -> Sizes:
        """The same data for other processes."""
        return replace(self, ranks=ranks, batch_size=max(batch_size, self.group))


class Stream(IterableDataset[int]):
    """Numbers from 0, of which nobody knows how many there are; they begin at 100 times the epoch."""

    def __init__(self, samples: int) -> None:
        self.samples = samples
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Go to another epoch."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        return iter(range(100 * self.epoch, 100 * self.epoch + self.samples))


@st.composite
def sizes(
    draw: Any,
    modes: tuple[str, ...] = ("exact", "even"),
    plain: bool = False,
) -> Sizes:
    """1 to 7 ranks, batches of 1 to 33, 0 to 200 samples."""
    group = draw(st.sampled_from([1, 1, 2, 4]))
    count = draw(st.integers(0, 200)) // group * group
    seed = None if plain else draw(st.none() | st.integers(0, 2**40))
    lengths = st.none() if plain else st.none() | st.lists(st.integers(0, 99), min_size=count, max_size=count)
    return Sizes(
        count,
        draw(st.integers(1, 7)),
        draw(st.integers(group, 33)),
        draw(st.sampled_from(modes)),
        group,
        seed is not None,
        seed or 0,
        draw(lengths),
    )
