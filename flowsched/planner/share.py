"""Pass 1, share: how many rows each replica of a node gets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Share:
    """Loads of a node's replicas, in units (single rows, or groups that stay together).

    The first ``larger`` replicas get ``units + 1``, the next ``smaller`` get ``units``, the others nothing.

    Attributes:
        units: load of the smaller share; 0 only if there is nothing to share.
        larger: number of replicas with one unit more.
        smaller: number of replicas with ``units``.
    """

    units: int
    larger: int
    smaller: int

    @property
    def used(self) -> int:
        """Number of replicas that get work."""
        return self.larger + self.smaller


def share_units(units: int, replicas: int) -> Share:
    """Return the loads of ``replicas`` replicas that differ by at most one unit.

    With fewer units than replicas, the first ones get one each.

    >>> share_units(16, 3)
    Share(units=5, larger=1, smaller=2)
    >>> share_units(2, 3)
    Share(units=1, larger=0, smaller=2)
    """
    if units < replicas:
        return Share(units=min(units, 1), larger=0, smaller=units)
    each, extra = divmod(units, replicas)
    return Share(units=each, larger=extra, smaller=replicas - extra)
