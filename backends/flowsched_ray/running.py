"""The session's running side: steps are submitted to the actors, failures explained, and everything ended."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import ray
from ray.exceptions import RayError

from flowsched.backend import Deployment, Outputs, Program, Running, Seen, Step
from flowsched.errors import SessionError
from flowsched.events import CallEnded
from flowsched.plan import Plan
from flowsched_ray.actor import PREFIX
from flowsched_ray.edge import count_bytes
from flowsched_ray.failures import explain
from flowsched_ray.flight import Flight
from flowsched_ray.holding import HeldFlight
from flowsched_ray.replicas import Replicas, prepare_call
from flowsched_ray.submission import Submission, make_submission
from flowsched_ray.telling import Telling

_KEPT_PLANS = 16


class RayRunning(Running):
    """Live actors.

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
        self._lessons: OrderedDict[int, tuple[Plan, int, Any, Submission]] = OrderedDict()
        self._taught = 0
        self._row_bytes: dict[int, float] = {}
        self._told: dict[tuple[int, int], Seen] = {}
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
            try:
                outputs = step.collect(flight.run())
            except BaseException as error:  # noqa: BLE001 - it is raised below, without what Ray raised around it
                failure = self._end_failed(flight, error)
            else:
                failure = None
            finally:
                self._flight = None
            if failure is not None:
                try:
                    raise failure
                finally:
                    del failure  # or its traceback and this frame would keep each other alive
        self._row_bytes.update(flight.sizes)
        return outputs

    def close(self) -> None:
        """Kill the actors; those that a failure left in the middle of a call are given the grace time."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            flight = self._flight
        if not ray.is_initialized():
            return  # the user has shut Ray down, and with it everything
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
        key, submission = self._teach(step)
        head = PREFIX.pack(key, step.number)
        if self._observer is None and not self._must_hold(step, submission):
            return Flight(step, submission, head, self._told)
        telling = None if self._observer is None else stack.enter_context(Telling(self._observer))

        def tell(call: int, seconds: float) -> None:
            if telling is not None:
                telling.tell(CallEnded(step.number, *step.coordinates(call), seconds))

        def look_up() -> None:
            if telling is not None:
                telling.raise_error()

        row_bytes = self._guess_row_bytes(step, submission)
        return HeldFlight(
            step, submission, head, self._told, row_bytes=row_bytes, room=self._room, look_up=look_up, tell=tell
        )

    def _must_hold(self, step: Step, submission: Submission) -> bool:
        """Whether not all calls of the step may be submitted at once."""
        program = step.program
        if program.awaited or any(
            len(own) > most for own, most in zip(program.numbers, step.window, strict=True)
        ):
            return True
        row_bytes = self._guess_row_bytes(step, submission)
        return sum(rows * row_bytes[node] for node, rows in enumerate(submission.rows)) > self._room

    def _guess_row_bytes(self, step: Step, submission: Submission) -> dict[int, float]:
        """Return, by node, the bytes of a row: as learnt in former steps, else as those of the largest input."""
        graph = step.plan.graph
        known: dict[str, float] = {}
        for name, batch in zip(graph.sources, step.inputs, strict=True):
            known[name] = count_bytes(batch) / max(1, step.plan.samples)
        for index in submission.order:
            node = graph.nodes[index]
            guess = max(known[name] for name in node.inputs)
            known[node.name] = self._row_bytes.get(index, guess)
        return {graph.index(node.name): known[node.name] for node in graph}

    def _teach(self, step: Step) -> tuple[int, Submission]:
        """Return the key of the step's plan and its submission; actors that have not learnt it do so first."""
        plan = step.plan
        lesson = self._lessons.get(id(plan))
        if lesson is None:
            lesson = self._lessons[id(plan)] = self._teach_anew(step.program, step.seed)
        self._lessons.move_to_end(id(plan))
        return lesson[1], lesson[3]

    def _teach_anew(self, program: Program, seed: int) -> tuple[Plan, int, Any, Submission]:
        forgotten = None
        if len(self._lessons) >= _KEPT_PLANS:
            forgotten = self._lessons.popitem(last=False)[1][1]
        key, plan = self._taught, program.plan
        self._taught += 1
        lesson = ray.put((plan, seed))
        for replica in self._replicas.all:
            replica.actor.learn.remote(key, lesson, forgotten)
        submission = make_submission(
            program, lambda node, index, objects: prepare_call(self._replicas[node, index], objects, lesson)
        )
        return plan, key, lesson, submission

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
