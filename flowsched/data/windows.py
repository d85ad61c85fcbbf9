"""Samples that arrive one after another, nobody knows how many, dealt as if it had been known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from flowsched.errors import Problem
from flowsched.sharding import Deal, Mode, Sharding, ShardingError


@dataclass(frozen=True)
class Window:
    """What all ranks take in one step, with some samples before or after it.

    Attributes:
        samples: some samples in a row.
        deal: which of those each rank has.
        step: in which step of that deal.
    """

    samples: list[Any]
    deal: Deal
    step: int


def measure_window(sharding: Sharding) -> int:
    """Return how many samples a step takes that is not the last.

    >>> measure_window(Sharding(0, ranks=3, batch_size=5, group=2))
    12
    """
    return sharding.sharers * (sharding.batch_size // sharding.group) * sharding.group


def deal_stream(
    stream: Iterable[Any], sharding: Sharding, seen: int, tell_total: Callable[[int], None]
) -> Iterator[Window]:
    """Yield each step of what is left of a stream, as :class:`flowsched.sharding.Deal` cuts it.

    Mode "even" reads one step ahead, because the last step may leave some of its work to the one before.

    Args:
        stream: all samples, those that have been seen included; the same on each rank.
        sharding: how they are dealt; its number of samples says nothing.
        seen: samples to leave out.
        tell_total: is told how many samples there are, before a step is yielded that depends on it.

    Raises:
        ShardingError: fewer samples than have been seen, or a group that is not whole.
    """
    samples = iter(stream)
    skipped = sum(1 for _ in islice(samples, seen))
    if skipped < seen:
        said = f"the stream ends after {skipped} samples, of which {seen} have been seen"
        raise _refuse("other-data", said, "Load the state where it was written, or begin the epoch anew")
    window = measure_window(sharding)
    full = Deal(replace(sharding, samples=window))
    most = window * (2 if sharding.mode == Mode.EVEN else 1)
    held: list[Any] = []
    total = seen
    for sample in samples:
        held.append(sample)
        total += 1
        if len(held) == most:
            yield Window(held[:window], full, 0)
            del held[:window]
    if total % sharding.group:
        said = f"{total} samples do not make whole groups of {sharding.group}"
        raise _refuse("group-cut", said, "Give whole groups, or group=1")
    tell_total(total)
    rest = Deal(replace(sharding, samples=len(held)))
    for step in range(rest.steps):
        yield Window(held, rest, step)


def _refuse(code: str, said: str, mend: str) -> ShardingError:
    return ShardingError("the stream", [Problem(code, "data", said, mend)])
