"""What an observer of a session is told; small frozen values, in the order in which things happened.

An observer is any callable that takes one event. It is called from the threads of the backend, never by two
at once, and should return quickly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class ReplicaBuilt:
    """A replica is ready.

    Attributes:
        node: name of the node that owns it.
        replica: its index.
        seconds: time its constructor took.
    """

    node: str
    replica: int
    seconds: float


@dataclass(frozen=True)
class StepStarted:
    """A step begins; the totals are exact.

    Attributes:
        step: number of the step in its session.
        calls: calls to come, by node.
        rows: rows to be read, by node.
    """

    step: int
    calls: Mapping[str, int]
    rows: Mapping[str, int]


@dataclass(frozen=True)
class CallEnded:
    """A call has ended well.

    Attributes:
        step: number of the step.
        node: name of the node.
        replica: index of the replica.
        position: place in the replica's queue.
        rows: rows that the call read.
        seconds: time in the worker.
    """

    step: int
    node: str
    replica: int
    position: int
    rows: int
    seconds: float


@dataclass(frozen=True)
class StepEnded:
    """All calls of a step have ended well.

    Attributes:
        step: number of the step.
        seconds: time since its start.
    """

    step: int
    seconds: float


@dataclass(frozen=True)
class StepFailed:
    """A step has failed or was interrupted.

    Attributes:
        step: number of the step.
        error: why.
    """

    step: int
    error: BaseException


Event = ReplicaBuilt | StepStarted | CallEnded | StepEnded | StepFailed
Observer = Callable[[Event], None]
