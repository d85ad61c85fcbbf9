"""The session's running side in which each step is one execution of a compiled graph."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from queue import SimpleQueue
from typing import Any, NamedTuple

import ray
from ray.exceptions import RayActorError

from flowsched.backend import Outputs, Running, Step
from flowsched.batch import Batch
from flowsched.errors import BackendError, CapacityError, ReplicaLostError, SessionError
from flowsched_ray.arriving import arrive_home
from flowsched_ray.compiled_graph import CompiledGraph, LoadingError, silent
from flowsched_ray.edge import decode_copy, encode_rows
from flowsched_ray.failures import carried_error, say_lost
from flowsched_ray.lessons import Lesson, Lessons
from flowsched_ray.piece import Piece, pack_piece, unpack_piece
from flowsched_ray.reading import Ended, Reader
from flowsched_ray.replicas import Replica, Replicas
from flowsched_ray.told import Told

_UNLOADING = 40.0  # seconds that Ray may take to unload a graph whose actors live on; its own limits are 30
_PATIENCE = (
    5.0  # seconds that Ray may take to unload one when a session ends, and to tell why a channel broke
)
_DYING = 15.0  # seconds that are given to what ends as soon as the actors are dead, also on a busy machine


class _Failed(NamedTuple):
    """A replica has told of a failure, or was lost; or, without one, the session was closed."""

    replica: Replica | None
    error: BaseException | None


class CompiledRunning(Running):
    """Live actors in which a compiled graph is loaded, one for one plan at a time.

    A thread waits for the graph's outputs. Each actor is also watched by a task that ends when a call
    fails in it or it dies, which the graph itself would tell late or never.

    Args:
        replicas: the actors.
        room: bytes that the outputs of all calls of a step may take.
        patience: seconds that Ray may take to load a graph.
        grace: seconds that closing gives workers which a failure left in the middle of a call.
        disconnect: ends the session's hold on the connection to Ray.
    """

    def __init__(
        self,
        replicas: Replicas,
        *,
        room: float,
        patience: float,
        grace: float,
        disconnect: Callable[[], None],
    ) -> None:
        self._replicas = replicas
        self._room = room
        self._patience = patience
        self._grace = grace
        self._disconnect = disconnect
        self._lessons = Lessons(replicas)
        self._graph: CompiledGraph | None = None
        self._told = Told()
        self._failed = False
        self._events: SimpleQueue[Ended | _Failed] = SimpleQueue()
        self._reader = Reader(self._events.put)
        self._lock = threading.Lock()
        self._closed = False
        self._watched: list[Future[None]] = []
        for replica in replicas.all:
            watched: Future[None] = replica.actor.watch.remote().future()
            watched.add_done_callback(self._notice(replica))
            self._watched.append(watched)

    def run(self, step: Step) -> Outputs:
        """Execute one step; see :meth:`flowsched.backend.Running.run`.

        Raises:
            CapacityError: the plan's calls do not all fit at once.
        """
        if self._closed:
            raise SessionError(f"the session was closed before step {step.number} began")
        if not step.plan.table.calls:
            return step.collect([])
        lesson = self._lessons.teach(step)
        row_bytes = lesson.guess_row_bytes(step)
        self._refuse_unfit(step, lesson, row_bytes)
        graph = self._load(step, lesson, max(row_bytes))
        outputs = self._execute(step, graph)
        return step.collect(outputs)

    def close(self) -> None:
        """Unload the graph and kill the actors; workers in the middle of a call are given the grace time."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._events.put(_Failed(None, None))
        if not ray.is_initialized():  # the user has shut Ray down, and with it everything
            self._reader.end(_PATIENCE)
            self._disconnect()
            return
        try:
            stopped = [replica.actor.stop.remote(self._grace) for replica in self._replicas.all]
            ray.wait(stopped, num_returns=len(stopped), timeout=self._grace + 1.0, fetch_local=False)
        finally:
            self._unload()
            self._lessons.clear()
            self._disconnect()

    def _unload(self) -> None:
        graph, self._graph = self._graph, None
        with silent():
            # Ray may wait for ever for actors that live on, and one that it waits for runs no other graph.
            lives_on = self._replicas.are_reused and not self._failed
            if graph is not None and not (lives_on and graph.unload(_PATIENCE)):
                if self._failed:
                    # A value that another machine sends to a channel that is closed here ends Ray's raylet.
                    self._reader.end(self._grace)
                self._replicas.kill()
                graph.unload(_DYING)
            self._replicas.end()
        # A thread that is still inside Ray when Ray is shut down next would end the process.
        self._reader.end(_DYING)
        wait(self._watched, _DYING)

    def _load(self, step: Step, lesson: Lesson, row_bytes: float) -> CompiledGraph:
        """Return the graph of the step's plan, loaded in place of that of another."""
        graph = self._graph
        if graph is not None and graph.program.plan is step.plan:
            return graph
        if graph is not None:
            with silent():
                is_unloaded = graph.unload(_UNLOADING)
            self._graph = None
            if not is_unloaded:
                raise BackendError(
                    f"Ray has not unloaded the compiled graph of the last plan within {_UNLOADING:g} seconds. "
                    "Start a session for each number of samples, or leave compiled=True out"
                )
        replicas = self._replicas
        try:
            self._graph = CompiledGraph(
                step.program,
                lesson.key,
                lambda node, index: replicas[node, index].actor,
                row_bytes,
                self._patience,
            )
        except LoadingError as error:
            replicas.kill()  # which still wait for Ray
            error.thread.join(_DYING)
            raise CapacityError(
                f"Ray has not loaded the compiled graph within {self._patience:g} seconds. Its object store may "
                "have no room for the channels, of which Ray frees none before the job ends. Start Ray with a "
                "larger object_store_memory, raise start_timeout, or leave compiled=True out"
            ) from error
        except (ValueError, NotImplementedError) as error:
            raise BackendError(
                f"Ray cannot compile this plan: {error}. Leave compiled=True out to run it as tasks"
            ) from error
        return self._graph

    def _execute(self, step: Step, graph: CompiledGraph) -> Sequence[Batch]:
        pieces = [
            pack_piece(Piece(step.number, (), encode_rows(step.inputs[source], start, stop)))
            for source, start, stop in graph.slices
        ]
        self._reader.read(graph.execute(pieces))
        event = self._events.get()
        if isinstance(event, _Failed) or event.error is not None:
            self._failed = True
            raise self._explain(step, event)
        outputs: list[Batch] = [None] * step.plan.table.calls
        for call, carried in zip(graph.outputs, event.pieces, strict=True):
            piece = unpack_piece(carried)
            for node, replica, seen in piece.news:
                self._told.take(node, replica, seen)
            links = step.program.links[call]
            if links.is_output:
                outputs[call] = arrive_home(step, links, piece.rows, decode_copy)
        self._told.compare(step, graph.first_calls)
        return outputs

    def _explain(self, step: Step, event: Ended | _Failed) -> BaseException:
        """Return what a step ends with."""
        error, replica = event.error, event.replica if isinstance(event, _Failed) else None
        if error is None or self._closed:
            return SessionError(f"the session was closed in the middle of step {step.number}")
        if replica is None and carried_error(error) is None:
            event = self._await_cause(event)  # a channel has broken, since an actor has died
            error, replica = event.error or error, event.replica if isinstance(event, _Failed) else None
        own = carried_error(error)
        if own is not None:
            return own
        if replica is not None and isinstance(error, RayActorError):
            lost = ReplicaLostError(say_lost(error), node=replica.node, replica=replica.index)
            lost.__cause__ = error
            return lost
        return error

    def _await_cause(self, event: Ended | _Failed) -> Ended | _Failed:
        try:
            return self._events.get(timeout=_PATIENCE)
        except Exception:  # noqa: BLE001 - nobody tells why
            return event

    def _notice(self, replica: Replica) -> Callable[[Any], None]:
        events = self._events

        def ended(future: Any) -> None:
            error = future.exception()
            if error is not None:
                events.put(_Failed(replica, error))

        return ended

    def _refuse_unfit(self, step: Step, lesson: Lesson, row_bytes: Sequence[float]) -> None:
        for node, calls, most in zip(step.plan.graph, lesson.calls, step.window, strict=True):
            if calls > most:
                raise CapacityError(
                    f"node {node.name!r} has {calls} calls, of which {most} may be in flight, and a compiled graph "
                    f"holds none back. Give max_in_flight={calls} or more, or leave compiled=True out"
                )
        total = sum(rows * each for rows, each in zip(lesson.rows, row_bytes, strict=True))
        if total > self._room:
            raise CapacityError(
                f"the outputs of all calls take about {total:.3g} bytes, and max_bytes is {self._room:.3g}. "
                "Raise max_bytes, run fewer samples a step, or leave compiled=True out"
            )
