"""The session's running side: steps are submitted to the actors, failures explained, and everything ended."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from math import inf
from typing import Any

import ray
from ray.exceptions import RayError

from flowsched.backend import Deployment, Outputs, Running, Step
from flowsched.errors import SessionError
from flowsched.events import CallEnded
from flowsched_ray.actor import PREFIX
from flowsched_ray.failures import explain
from flowsched_ray.flight import Flight
from flowsched_ray.holding import HeldFlight
from flowsched_ray.lessons import Lesson, Lessons
from flowsched_ray.replicas import Replicas, prepare_call
from flowsched_ray.submission import Submission, make_submission
from flowsched_ray.telling import Telling
from flowsched_ray.told import Told

_SMALL = 32_768  # bytes of a call's output that Ray brings to the driver anyway, and that are cheaper read than not


class RayRunning(Running):
    """Live actors whose calls are tasks.

    Args:
        replicas: the actors.
        deployment: what they were built for.
        room: bytes of outputs in the object store that are alive at once.
        grace: seconds that closing gives workers which a failure left in the middle of a call.
        disconnect: ends the session's hold on the connection to Ray.
    """

    def __init__(
        self,
        replicas: Replicas,
        deployment: Deployment,
        *,
        room: float,
        grace: float,
        disconnect: Callable[[], None],
    ) -> None:
        self._replicas = replicas
        self._observer = deployment.observer
        self._room = room
        self._grace = grace
        self._disconnect = disconnect
        self._lessons = Lessons(replicas)
        self._row_bytes: dict[int, float] = {}
        self._latest: tuple[int, Submission] | None = (
            None  # the step that has just ended well, if it was in flight
        )
        self._told = Told()
        self._busy: list[Any] = []
        self._flight: Flight | None = None
        self._lock = threading.Lock()
        self._closed = False

    def run(self, step: Step) -> Outputs:
        """Execute one step; see :meth:`flowsched.backend.Running.run`."""
        with ExitStack() as stack:
            flight = self._make_flight(step, stack)
            with self._lock:
                if self._closed:
                    raise SessionError(f"the session was closed before step {step.number} began")
                self._flight = flight
            failure: BaseException | None = None
            try:
                outputs = step.collect(flight.run())
            except BaseException as error:  # noqa: BLE001 - it is raised below, without what Ray raised around it
                failure = self._end_failed(flight, error)
            finally:
                self._flight = None
            if failure is not None:
                try:
                    raise failure
                finally:
                    del failure  # or its traceback and this frame would keep each other alive
        held = isinstance(flight, HeldFlight)
        self._latest = None if held else (step.number, flight.submission)
        for node, size in flight.sizes.items():
            self._row_bytes[node] = max(size, self._row_bytes.get(node, 0.0))
        return outputs

    def close(self) -> None:
        """Kill the actors; those that a failure left in the middle of a call are given the grace time."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            flight = self._flight
        if not ray.is_initialized():
            self._disconnect()  # the user has shut Ray down, and with it everything
            return
        busy = self._busy or (flight.cancel() if flight is not None else [])
        try:
            if busy and self._grace:
                ray.wait(busy, num_returns=len(busy), timeout=self._grace, fetch_local=False)
        finally:
            self._busy = []
            self._lessons.clear()
            self._replicas.end()
            self._disconnect()

    def _make_flight(self, step: Step, stack: ExitStack) -> Flight:
        lesson = self._lessons.teach(step)
        row_bytes = self._row_bytes
        head = PREFIX.pack(lesson.key, step.number)
        if self._observer is None and self._may_fly(step, lesson):
            small = frozenset(
                node for node, most in enumerate(lesson.most_rows) if row_bytes.get(node, 0) * most <= _SMALL
            )
            submission = self._submission(step, lesson, small)
            follows = submission.repeats and self._latest == (step.number - 1, submission)
            return Flight(step, submission, None if follows else head, self._told)
        telling = None if self._observer is None else stack.enter_context(Telling(self._observer))

        def tell(call: int, seconds: float) -> None:
            if telling is not None:
                telling.tell(CallEnded(step.number, *step.coordinates(call), seconds))

        def look_up() -> None:
            if telling is not None:
                telling.raise_error()

        submission = self._submission(step, lesson, frozenset())
        return HeldFlight(
            step,
            submission,
            head,
            self._told,
            row_bytes=row_bytes,
            room=self._room,
            look_up=look_up,
            tell=tell,
        )

    def _may_fly(self, step: Step, lesson: Lesson) -> bool:
        """Whether all calls of the step may be submitted at once, as far as is known from former steps."""
        known = [
            self._row_bytes.get(node, 0.0 if not calls else inf) for node, calls in enumerate(lesson.calls)
        ]
        return (
            not step.program.awaited
            and all(calls <= most for calls, most in zip(lesson.calls, step.window, strict=True))
            and sum(rows * each for rows, each in zip(lesson.rows, known, strict=True) if rows) <= self._room
        )

    def _submission(self, step: Step, lesson: Lesson, small: frozenset[int]) -> Submission:
        """Return the step's plan as it is submitted: signals of ``small`` nodes carry rows."""
        if lesson.submission is None or lesson.submission[0] != small:
            replicas, ref = self._replicas, lesson.ref
            submission = make_submission(
                step.program,
                lambda node, index, objects: prepare_call(replicas[node, index], objects, ref),
                small,
            )
            lesson.submission = small, submission
        return lesson.submission[1]

    def _end_failed(self, flight: Flight, error: BaseException) -> BaseException:
        """Return what a step ends with, once no call of it is begun any more."""
        if self._closed:
            number = flight.step.number
            return SessionError(f"the session was closed in the middle of step {number}")
        try:
            found = explain(error, flight.step, flight.signals) if isinstance(error, RayError) else error
        finally:
            self._busy = flight.cancel()
        return found
