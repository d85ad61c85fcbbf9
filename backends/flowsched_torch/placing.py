"""On which rank each replica is."""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping, Sequence

from flowsched.backend import Deployment
from flowsched.errors import CapacityError
from flowsched.programs import Placement

_MOST_BY_DEFAULT = 32
_MOST_A_CORE = 4
_FILES_A_RANK = 5  # of this process, while ranks are started: two connections, both ends, and one for data
_OTHER_FILES = 64


def default_ranks(replicas: int) -> int:
    """Return how many ranks serve so many replicas by default: one each, as long as the machine holds them."""
    cores = os.cpu_count() or 1
    return max(1, min(replicas, max(_MOST_BY_DEFAULT, _MOST_A_CORE * cores)))


def place_replicas(
    deployment: Deployment,
    ranks: int | None,
    placed: Mapping[str, Sequence[int]] | None,
    home: int | None = None,
) -> Placement:
    """Return the rank of each replica.

    Those that are built are dealt to the ranks in turn, node by node; where all are, that is
    ``Placement.spread``.

    Args:
        deployment: what is built.
        ranks: how many ranks there are; None for the default.
        placed: the rank of each replica, if that is given.
        home: the rank with inputs and outputs; None for one more, which runs no calls.

    Raises:
        PlacementError: the ranks that are given are none.
        CapacityError: this process may not have so many connections.
    """
    built = sum(deployment.replicas.values())
    if placed is not None and ranks is None and home is None:
        ranks = _ranks_in(placed)
    ranks = default_ranks(built) if ranks is None else ranks
    at_home = ranks if home is None else home
    if home is None:
        _refuse_too_many(ranks)
    if placed is not None:
        given = Placement(ranks, at_home, placed)  # type: ignore[arg-type]  # it says what is wrong with it
        given.check(deployment.graph)
        return given
    replicas, dealt = {}, 0
    for node in deployment.graph.owners():
        count = deployment.replicas[node.name]
        used = tuple(at % ranks for at in range(dealt, dealt + count))
        replicas[node.name] = (*used, *[0] * (node.replicas - count))
        dealt += count
    return Placement(ranks, at_home, replicas)


def _ranks_in(placed: object) -> int:
    """Return how many ranks a placement names; what is none is left to the check of the placement."""
    lists = placed.values() if isinstance(placed, Mapping) else ()
    named = [rank for own in lists if isinstance(own, Sequence) for rank in own if isinstance(rank, int)]
    return 1 + max(0, *named) if named else 1


def _refuse_too_many(ranks: int) -> None:
    """Refuse ranks that this process cannot be connected to, before any is started.

    Raises:
        CapacityError: it says how many files that takes, and how many there may be.
    """
    wanted, (most, _) = _FILES_A_RANK * ranks + _OTHER_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and wanted > most:
        raise CapacityError(
            f"{ranks:,} ranks take {wanted:,} open files in this process, which may have {most:,}. Give fewer "
            "ranks, or raise the limit: ulimit -n"
        )
