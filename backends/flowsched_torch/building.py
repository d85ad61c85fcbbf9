"""Which replicas are still being built, and how long they may be."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from flowsched.errors import BuildError
from flowsched.events import ReplicaBuilt
from flowsched.programs import Placement
from flowsched_torch.losses import served_replicas

_MOST_LISTED = 8


class Building:
    """Replicas that are being built, those of a rank one after the other.

    Args:
        placement: on which ranks they are.
        replicas: how many of each node are built.
        seconds: that all of them have together; None for as long as they take.
        late: is called, in a thread of its own, when that time is over.
    """

    def __init__(
        self,
        placement: Placement,
        replicas: Mapping[str, int],
        seconds: float | None,
        late: Callable[[], object],
    ) -> None:
        self._replicas, self._seconds = replicas, seconds
        self._left = {rank: served_replicas(placement, replicas, rank) for rank in range(placement.processes)}
        self._timer = None if seconds is None else threading.Timer(seconds, late)

    def begin(self) -> None:
        """Let the time run: from now on constructors may be at work."""
        if self._timer is not None:
            self._timer.name, self._timer.daemon = "building", True
            self._timer.start()

    def note(self, event: ReplicaBuilt) -> None:
        """Take note of a replica that is there."""
        for left in self._left.values():
            if (event.node, event.replica) in left:
                left.remove((event.node, event.replica))

    def end(self) -> None:
        """Let the time be over without consequence: all are there, or it failed."""
        if self._timer is not None and self._timer.is_alive():
            self._timer.cancel()
            self._timer.join()

    def error(self) -> BuildError:
        """Return what is raised when the time is over; it names the replicas that hold up their ranks."""
        left_now = [(rank, list(left)) for rank, left in self._left.items()]  # another thread takes note
        late = [(*left[0], rank) for rank, left in left_now if left]
        named = [f"{node}.{replica} on rank {rank}" for node, replica, rank in late[:_MOST_LISTED]]
        more = f" and {len(late) - _MOST_LISTED} more" if len(late) > _MOST_LISTED else ""
        waiting = sum(len(left) for _, left in left_now) - len(late)
        behind = f", and {waiting} more wait for these on their ranks" if waiting else ""
        cause = TimeoutError(
            f"build_timeout of {self._seconds:g} seconds is over. Still being built: "
            f"{', '.join(named)}{more}{behind}"
        )
        node, replica, _ = late[0] if late else ("", 0, 0)
        error = BuildError(node=node, replica=replica, replicas=self._replicas.get(node, 0), cause=cause)
        error.__cause__ = cause
        return error
