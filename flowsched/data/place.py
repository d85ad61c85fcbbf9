"""Which of how many processes this one is."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch.distributed as dist

from flowsched.errors import Problem
from flowsched.sharding import ShardingError
from flowsched.sharding.declaration import is_whole


@dataclass(frozen=True)
class Place:
    """One process among those that data is dealt to.

    Attributes:
        rank: its number, from 0.
        ranks: how many there are.
    """

    rank: int
    ranks: int


def find_place(
    rank: int | None = None,
    ranks: int | None = None,
    process_group: dist.ProcessGroup | None = None,
    environment: Mapping[str, str] | None = None,
) -> Place:
    """Return the place of this process: as given, else of the process group, else as the launcher says, else alone.

    Args:
        rank: this process's number.
        ranks: how many processes there are; both are given, or neither.
        process_group: whose ranks are meant; the default group, where there is one, if it is None.
        environment: where launchers write ``RANK`` and ``WORLD_SIZE``; this process's own by default.

    Raises:
        ShardingError: one number without the other, a rank that is not below the ranks, numbers that contradict
            the process group that is given, or a process group that this process is not in.

    >>> find_place(rank=1, ranks=4)
    Place(rank=1, ranks=4)
    >>> find_place(environment={"RANK": "2", "WORLD_SIZE": "3"})
    Place(rank=2, ranks=3)
    >>> find_place(environment={})
    Place(rank=0, ranks=1)
    """
    problems = list(_find_problems(rank, ranks, process_group))
    if problems:
        raise ShardingError("the place of this process", problems)
    if rank is not None and ranks is not None:
        return Place(int(rank), int(ranks))
    if dist.is_available() and dist.is_initialized():
        return Place(dist.get_rank(process_group), dist.get_world_size(process_group))
    return _read_place(os.environ if environment is None else environment)


def _find_problems(
    rank: int | None, ranks: int | None, process_group: dist.ProcessGroup | None
) -> Iterator[Problem]:
    if (rank is None) != (ranks is None):
        given, other = ("rank", "ranks") if ranks is None else ("ranks", "rank")
        yield Problem("half-a-place", given, f"it is given without {other}", "Give both, or neither")
    elif rank is not None and not (is_whole(rank) and is_whole(ranks)):
        said = f"rank={rank!r}, ranks={ranks!r} are no whole numbers"
        yield Problem("not-whole", "rank", said, "Give ints")
        return
    elif rank is not None and ranks is not None and not 0 <= rank < ranks:
        yield Problem(
            "no-such-rank", "rank", f"{rank} is none of 0 to {ranks - 1}", "Ranks count from 0 to ranks - 1"
        )
    if process_group is None:
        return
    own = dist.get_rank(process_group)
    size = dist.get_world_size(process_group) if own >= 0 else 0
    if own < 0:
        yield Problem(
            "not-in-group",
            "process_group",
            f"this process, rank {dist.get_rank()} of the default group, is not in it",
            "Make loaders only where the group has a rank, or give rank= and ranks=",
        )
    elif rank is not None and ranks is not None and (rank, ranks) != (own, size):
        yield Problem(
            "two-places",
            "rank",
            f"rank={rank}, ranks={ranks} is given, and process_group= says rank={own}, ranks={size}",
            "Give the numbers or the process group",
        )


def _read_place(environment: Mapping[str, str]) -> Place:
    """Return what a launcher has written, or the place of a process that is alone."""
    written = {name: environment[name] for name in ("RANK", "WORLD_SIZE") if name in environment}
    if not written:
        return Place(0, 1)
    said = ", ".join(f"{name}={value}" for name, value in written.items())
    mend = "Start processes with a launcher that sets both, such as torchrun, or give rank= and ranks="
    try:
        place = Place(int(environment["RANK"]), int(environment["WORLD_SIZE"]))
    except (KeyError, ValueError):
        problem = Problem(
            "half-a-place", "environment", f"it says {said}, which is no rank and its ranks", mend
        )
        raise ShardingError("the place of this process", [problem]) from None
    if not 0 <= place.rank < place.ranks:
        problem = Problem("no-such-rank", "environment", f"it says {said}", mend)
        raise ShardingError("the place of this process", [problem])
    return place
