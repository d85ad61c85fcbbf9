"""The session's running side: steps are submitted to the actors, failures explained, and everything ended."""

from __future__ import annotations

import operator
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import ray
from ray.exceptions import RayError

from flowsched.backend import Deployment, Outputs, Running, Seen, Step
from flowsched.errors import SessionError
from flowsched.events import CallEnded
from flowsched.graph.topology import topological_order
from flowsched_ray.actor import PREFIX
from flowsched_ray.edge import count_bytes
from flowsched_ray.failures import explain
from flowsched_ray.flight import Flight
from flowsched_ray.holding import HeldFlight
from flowsched_ray.replicas import Replicas, prepare_call
from flowsched_ray.submission import Submission, make_submission
from flowsched_ray.telling import Telling

_KEPT_PLANS = 16
_SMALL = 32_768  # bytes of a call's output that Ray brings to the driver anyway, and that are cheaper read than not


class _Lesson:
    """A plan that the actors have learnt, and what the driver keeps of it.

    Attributes:
        plan: the plan.
        key: its key in the actors.
        ref: the plan and the session's seed, in the object store.
        small: the nodes whose signals carry rows in ``submission``.
    """

    def __init__(self, key: int, step: Step) -> None:
        program, self.plan, self.key = step.program, step.plan, key
        self.ref: Any = ray.put((step.plan, step.seed))
        self.order = topological_order(self.plan.graph)
        self.calls = [len(own) for own in program.numbers]
        self.without_after = not program.awaited
        made = [[program.links[call].made for call in own] for own in program.numbers]
        self.rows, self.most_rows = [sum(own) for own in made], [max(own, default=0) for own in made]
        self.small: frozenset[int] | None = None
        self.submission: Submission


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
        self._lessons: OrderedDict[int, _Lesson] = OrderedDict()
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
        lesson = self._teach(step)
        row_bytes = self._guess_row_bytes(step, lesson)
        head = PREFIX.pack(lesson.key, step.number)
        if self._observer is None and self._may_fly(step, lesson, row_bytes):
            submission = self._submission(step, lesson, row_bytes)
            return Flight(step, submission, head, self._told)
        telling = None if self._observer is None else stack.enter_context(Telling(self._observer))

        def tell(call: int, seconds: float) -> None:
            if telling is not None:
                telling.tell(CallEnded(step.number, *step.coordinates(call), seconds))

        def look_up() -> None:
            if telling is not None:
                telling.raise_error()

        submission = self._submission(step, lesson, None)
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

    def _may_fly(self, step: Step, lesson: _Lesson, row_bytes: Sequence[float]) -> bool:
        """Whether all calls of the step may be submitted at once."""
        return (
            lesson.without_after
            and all(calls <= most for calls, most in zip(lesson.calls, step.window, strict=True))
            and sum(map(operator.mul, lesson.rows, row_bytes)) <= self._room
        )

    def _guess_row_bytes(self, step: Step, lesson: _Lesson) -> list[float]:
        """Return, by node, the bytes of a row: as learnt in former steps, else as those of its largest input."""
        graph = step.plan.graph
        known = {
            name: count_bytes(batch) / max(1, step.plan.samples)
            for name, batch in zip(graph.sources, step.inputs, strict=True)
        }
        for index in lesson.order:
            node = graph.nodes[index]
            learnt = self._row_bytes.get(index)
            known[node.name] = max(known[name] for name in node.inputs) if learnt is None else learnt
        return [known[node.name] for node in graph]

    def _submission(self, step: Step, lesson: _Lesson, row_bytes: Sequence[float] | None) -> Submission:
        """Return the step's plan as it is submitted: signals carry rows where calls make few bytes."""
        small = frozenset(
            node for node, each in enumerate(row_bytes or ()) if each * lesson.most_rows[node] <= _SMALL
        )
        if lesson.small != small:
            lesson.small = small
            lesson.submission = make_submission(
                step.program,
                lambda node, index, objects: prepare_call(self._replicas[node, index], objects, lesson.ref),
                small,
            )
        return lesson.submission

    def _teach(self, step: Step) -> _Lesson:
        """Return what the actors know of the step's plan; those that have not learnt it do so first."""
        lesson = self._lessons.get(id(step.plan))
        if lesson is not None:
            self._lessons.move_to_end(id(step.plan))
            return lesson
        forgotten = None
        if len(self._lessons) >= _KEPT_PLANS:
            forgotten = self._lessons.popitem(last=False)[1].key
        lesson = self._lessons[id(step.plan)] = _Lesson(self._taught, step)
        self._taught += 1
        for replica in self._replicas.all:
            replica.actor.learn.remote(lesson.key, lesson.ref, forgotten)
        return lesson

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
