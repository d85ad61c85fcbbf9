"""On which rank each replica is."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from flowsched.backend import Deployment
from flowsched.programs import Placement

_MOST_BY_DEFAULT = 32
_MOST_A_CORE = 4


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
    """
    built = sum(deployment.replicas.values())
    if placed is not None and ranks is None and home is None:
        ranks = 1 + max((rank for own in placed.values() for rank in own), default=0)
    ranks = default_ranks(built) if ranks is None else ranks
    at_home = ranks if home is None else home
    if placed is not None:
        given = Placement(ranks, at_home, {name: tuple(own) for name, own in placed.items()})
        given.check(deployment.graph)
        return given
    replicas, dealt = {}, 0
    for node in deployment.graph.owners():
        count = deployment.replicas[node.name]
        used = tuple(at % ranks for at in range(dealt, dealt + count))
        replicas[node.name] = (*used, *[0] * (node.replicas - count))
        dealt += count
    return Placement(ranks, at_home, replicas)
