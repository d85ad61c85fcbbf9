"""Why a local rank is gone, silent or has lost a connection, told as the replica or the failure behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flowsched.backend import Step, unpack_error
from flowsched.errors import ReplicaLostError, SessionError
from flowsched.programs import Placement
from flowsched_torch.board import Board
from flowsched_torch.control import Kind
from flowsched_torch.forking import Forking, say_status
from flowsched_torch.hub import Hub
from flowsched_torch.losses import SEE_WHY, lost_replica, served_replicas

_WORD_OF_A_DEATH = 1.0  # seconds in which the system tells how a process has ended


class LocalLosses:
    """Finds out what has become of ranks that this program has started.

    Args:
        hub: what they say.
        board: what each of them is at.
        forking: what tells how their processes end.
        placement: on which rank each replica is.
        replicas: how many of each node are built.
        timeout: seconds after which a rank that does not answer is given up.
        pids: their processes, by rank; filled when they are there.
    """

    def __init__(
        self,
        hub: Hub,
        board: Board,
        forking: Forking,
        placement: Placement,
        replicas: Mapping[str, int],
        timeout: float,
        pids: Sequence[int],
    ) -> None:
        self._hub, self._board, self._forking = hub, board, forking
        self._placement, self._replicas = placement, replicas
        self._timeout, self._pids = timeout, pids

    def behind(self, error: BaseException, step: Step | None) -> BaseException:
        """Return why a connection was lost, of which gloo says ``error``: a failure that is about to be told, or a
        death."""
        for _, frame in self._hub.settle(_WORD_OF_A_DEATH):
            if frame.kind is Kind.FAILED:
                return unpack_error(frame.payload)
            if self._hub.gone:
                break
        if self._hub.gone:
            return self.lost(self._hub.gone[0], step)
        found = SessionError(f"the connection between two ranks was lost: {error}")
        found.__cause__ = error
        return found

    def lost(self, rank: int, step: Step | None) -> ReplicaLostError:
        """Return what is raised for a rank whose connection has ended."""
        pid = self._pids[rank] if rank < len(self._pids) else 0
        self._forking.wait_for([pid], _WORD_OF_A_DEATH)
        status = self._forking.status_of(pid)
        how = "is gone" if status is None else say_status(status)
        return self._blame(rank, step, f"its process {pid} {how}", SEE_WHY)

    def silent(self, rank: int, step: Step | None) -> ReplicaLostError:
        """Return what is raised for a rank that does not answer."""
        mend = "Give a larger timeout= if it was only busy"
        return self._blame(rank, step, f"its rank has not answered for {self._timeout:g} seconds", mend)

    def _blame(self, rank: int, step: Step | None, why: str, mend: str) -> ReplicaLostError:
        served = served_replicas(self._placement, self._replicas, rank)
        return lost_replica(served, self._board, rank, step, why, mend)
