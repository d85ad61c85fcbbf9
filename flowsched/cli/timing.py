"""How long a run took: starting its replicas, and running its step."""

from __future__ import annotations

import time
from collections.abc import Callable

from flowsched.events import Event, Observer, ReplicaBuilt, StepEnded, StepStarted


class Timing:
    """An observer that tells another, and takes the time.

    A backend that tells of no events has no step of which this hears; then all time is that of the run.

    Args:
        observer: the other.
        clock: returns seconds.

    Attributes:
        replicas: how many have been built.
        start_seconds: from when this was made until the step began; None while none has.
    """

    def __init__(self, observer: Observer, clock: Callable[[], float] = time.perf_counter) -> None:
        self._observer, self._clock = observer, clock
        self._made = clock()
        self._ran: float | None = None
        self.replicas = 0
        self.start_seconds: float | None = None

    def __call__(self, event: Event) -> None:
        """Take in an event."""
        match event:
            case ReplicaBuilt():
                self.replicas += 1
            case StepStarted():
                self.start_seconds = self._clock() - self._made
            case StepEnded(seconds=seconds):
                self._ran = seconds
        self._observer(event)

    def end(self) -> None:
        """Take note that the run has ended."""
        if self._ran is None:
            self._ran = self._clock() - self._made

    @property
    def run_seconds(self) -> float:
        """Seconds that the step took, or all until :meth:`end`, where nothing was told of a step."""
        return self._ran or 0.0

    def __str__(self) -> str:
        if self.start_seconds is None:
            return f"started and ran in {self.run_seconds:.3f} s"
        replicas = f"{self.replicas:,} replica{'' if self.replicas == 1 else 's'}"
        return f"started {replicas} in {self.start_seconds:.3f} s, ran in {self.run_seconds:.3f} s"
