"""A rank that is lost, told as the replica that it served."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flowsched.backend import Step
from flowsched.errors import ReplicaLostError
from flowsched.programs import Placement
from flowsched_torch.board import Board

SEE_WHY = (
    "Look for what its worker ends itself with, and in the system's log for a process killed out of memory"
)


def served_replicas(placement: Placement, built: Mapping[str, int], rank: int) -> list[tuple[str, int]]:
    """Return node and number of each replica that a rank builds, in the order in which it does."""
    return [
        (name, replica)
        for name, replicas in placement.served_by(rank).items()
        for replica in replicas
        if replica < built[name]
    ]


def lost_replica(
    served: Sequence[tuple[str, int]], board: Board | None, rank: int, step: Step | None, why: str, mend: str
) -> ReplicaLostError:
    """Return what is raised for a lost rank: the call that it was in, if that is known, or its first replica."""
    call = None if board is None else board.call_of(rank)
    if step is not None and call is not None:
        return ReplicaLostError(why, mend, **step.place(call))
    building = 0 if board is None or step is not None else board.build_of(rank)
    node, replica = served[building] if building < len(served) else ("", 0)
    if len(served) > 1:
        others = ", ".join(f"{name}.{number}" for name, number in served)
        why = f"{why} (rank {rank} serves {others})"
    return ReplicaLostError(why, mend, node=node, replica=replica)
