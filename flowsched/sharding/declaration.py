"""What is to be dealt to how many processes, and how: checked when it is declared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flowsched.errors import Problem, ProblemsError, say_known


class Mode(StrEnum):
    """What the data is for.

    Attributes:
        EXACT: each sample to exactly one rank, loads that differ by at most one; ranks may have different numbers
            of batches. For evaluation and generation.
        EVEN: likewise, with the same number of batches for each rank, some of them shorter. For training with
            collectives.
        LOCAL: the data is this rank's own already, and all of it stays here. For rollouts.
    """

    EXACT = "exact"
    EVEN = "even"
    LOCAL = "local"


class Tail(StrEnum):
    """What :attr:`Mode.EVEN` does with samples that do not fill the last batch of each rank.

    Attributes:
        CUT: the last batches are shorter, and where there are fewer samples than ranks some are empty.
        PAD: the first samples of the epoch come again, as many as are missing, with weight 0.
        DROP: they are left out of this epoch.
    """

    CUT = "cut"
    PAD = "pad"
    DROP = "drop"


class ShardingError(ProblemsError):
    """Samples cannot be dealt as declared."""

    code = "sharding"


@dataclass(frozen=True)
class Sharding:
    """How samples are dealt to ranks, for any epoch.

    Args:
        samples: how many there are.
        ranks: how many processes there are.
        batch_size: the most samples in one batch of one rank.
        mode: what the data is for: "exact", "even" or "local".
        group: samples in a row that stay together in one batch, such as the answers to one prompt.
        shuffle: whether each epoch has an order of its own, of groups where samples are grouped.
        seed: of those orders.
        tail: what "even" does with samples that fill no batch: "cut", "pad" or "drop".
        lengths: (samples,) cost of each sample, such as its tokens. The batches that ranks have at the same time
            then cost about the same.

    Raises:
        ShardingError: numbers below their least or of the wrong type, unknown modes, a batch size below the group,
            samples that do not make whole groups, or not one length for each sample.
    """

    samples: int
    ranks: int
    batch_size: int
    mode: Mode | str = Mode.EXACT
    group: int = 1
    shuffle: bool = False
    seed: int = 0
    tail: Tail | str = Tail.CUT
    lengths: NDArray[Any] | Sequence[float] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        problems = list(_find_problems(self))
        if problems:
            raise ShardingError("the sharding", problems)
        for name in (*_LEAST, "seed"):
            object.__setattr__(self, name, int(getattr(self, name)))  # numpy's own would overflow
        object.__setattr__(self, "mode", Mode(self.mode))
        object.__setattr__(self, "tail", Tail(self.tail))
        if self.lengths is not None:
            lengths = np.array(self.lengths, dtype=np.float64)
            lengths.flags.writeable = False
            object.__setattr__(self, "lengths", lengths)

    @property
    def units(self) -> int:
        """How many groups there are, or samples where they are not grouped: what is dealt."""
        return self.samples // self.group

    @property
    def sharers(self) -> int:
        """How many ranks the samples are dealt to; 1 where they are this rank's own."""
        return 1 if self.mode == Mode.LOCAL else self.ranks


_LEAST = {"samples": 0, "ranks": 1, "batch_size": 1, "group": 1}


def _find_problems(given: Sharding) -> Iterator[Problem]:
    wrong = [name for name in (*_LEAST, "seed") if not is_whole(getattr(given, name))]
    for name in wrong:
        value = getattr(given, name)
        yield Problem(
            "not-whole", name, f"{value!r} ({type(value).__name__}) is no whole number", f"Give {name} an int"
        )
    for name, least in _LEAST.items():
        if name not in wrong and getattr(given, name) < least:
            value = getattr(given, name)
            yield Problem("too-small", name, f"{value} is below {least}", f"Give {least} or more")
    for name, kind in (("mode", Mode), ("tail", Tail)):
        known = [str(one) for one in kind]
        if (value := getattr(given, name)) not in known:
            yield Problem(
                "unknown", name, f"{value!r} is not known", say_known(str(value), known, f"{name}s")
            )
    if not wrong:
        yield from _find_misfits(given)


def _find_misfits(given: Sharding) -> Iterator[Problem]:
    """Yield where two arguments do not fit each other."""
    samples, group, batch_size = given.samples, given.group, given.batch_size
    if 1 <= batch_size < group:
        yield Problem(
            "group-too-large",
            "batch_size",
            f"a batch of {batch_size} cannot hold a group of {group}, which stays together",
            f"Give batch_size={group} or more, or a smaller group",
        )
    if group > 1 and samples >= 0 and samples % group:
        yield Problem(
            "group-cut",
            "group",
            f"{samples} samples make {samples // group} groups of {group}, and {samples % group} are left over",
            "Give whole groups, or group=1",
        )
    if given.tail in tuple(Tail) and given.tail != Tail.CUT and given.mode != Mode.EVEN:
        yield Problem(
            "no-tail",
            "tail",
            f"tail={str(given.tail)!r} changes nothing in mode {str(given.mode)!r}, which neither pads nor drops",
            'Leave it out, or give mode="even"',
        )
    yield from _find_bad_lengths(given)


def _find_bad_lengths(given: Sharding) -> Iterator[Problem]:
    if given.lengths is None:
        return
    mend = f"Give one number of 0 or more for each of the {given.samples} samples"
    try:
        lengths = np.asarray(given.lengths, dtype=np.float64)
    except (TypeError, ValueError) as error:
        yield Problem("bad-lengths", "lengths", f"they are no numbers: {error}", mend)
        return
    if np.iscomplexobj(given.lengths):
        yield Problem("bad-lengths", "lengths", "they are complex", mend)
    elif lengths.shape != (given.samples,):
        yield Problem("bad-lengths", "lengths", f"their shape is {lengths.shape}", mend)
    elif not bool(np.all(np.isfinite(lengths) & (lengths >= 0))):
        first = int(np.argmin(np.isfinite(lengths) & (lengths >= 0)))
        yield Problem("bad-lengths", "lengths", f"that of sample {first} is {lengths[first]}", mend)


def is_whole(value: object) -> bool:
    """Return whether a value is a whole number, numpy's too, and no bool."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
