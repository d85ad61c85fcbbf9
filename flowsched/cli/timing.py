"""How long a run took: starting its replicas, and running its step."""

from __future__ import annotations

import time
from collections.abc import Callable

from flowsched.events import Event, Observer, ReplicaBuilt, StepEnded, StepStarted


class Timing:
    """An observer that tells another, and takes the time.

    Args:
        observer: the other.
        clock: returns seconds.

    Attributes:
        replicas: how many have been built.
        start_seconds: from when this was made until the step began.
        run_seconds: that the step took.
    """

    def __init__(self, observer: Observer, clock: Callable[[], float] = time.perf_counter) -> None:
        self._observer, self._clock = observer, clock
        self._made = clock()
        self.replicas = 0
        self.start_seconds = self.run_seconds = 0.0

    def __call__(self, event: Event) -> None:
        """Take in an event."""
        match event:
            case ReplicaBuilt():
                self.replicas += 1
            case StepStarted():
                self.start_seconds = self._clock() - self._made
            case StepEnded(seconds=seconds):
                self.run_seconds = seconds
        self._observer(event)

    def __str__(self) -> str:
        replicas = f"{self.replicas:,} replica{'' if self.replicas == 1 else 's'}"
        return f"started {replicas} in {self.start_seconds:.3f} s, ran in {self.run_seconds:.3f} s"
