"""The threads themselves: started together, handed steps, ended together."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from queue import SimpleQueue

from flowsched.backend import Deployment, Outputs, ReplicaContext, Running, Step
from flowsched.errors import CapacityError, SessionError
from flowsched_threads.progress import StepProgress
from flowsched_threads.serve import Work, serve

_LONGEST = 1e6  # seconds; more than enough, and the lock under a thread takes no infinity


class Replicas(Running):
    """One thread for each replica, which takes calls from a queue of its own until it is given None.

    The threads hold their queues and never this object, so that they also end when it is forgotten.
    """

    def __init__(self, deployment: Deployment, devices: Mapping[str, Sequence[str]], grace: float) -> None:
        self._grace = grace
        self._queues: dict[str, list[SimpleQueue[Work]]] = {
            node: [SimpleQueue() for _ in range(count)] for node, count in deployment.replicas.items()
        }
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._progress: StepProgress | None = None
        self._closed = False
        self._idle = False  # whether no replica can be in the middle of its constructor or a call
        self._forgotten = weakref.finalize(self, _tell_to_end, self._queues)
        built: SimpleQueue[BaseException | None] = SimpleQueue()
        try:
            self._start_threads(deployment, devices, built)
            for _ in self._threads:
                _raise_if_any(built.get())
        except BaseException:
            self.close()
            raise
        self._idle = True

    def run(self, step: Step) -> Outputs:
        """Execute one step; see :meth:`flowsched.backend.Running.run`."""
        progress = StepProgress(step, self._queues)
        self._idle = False
        try:
            with self._lock:
                if self._closed:
                    raise SessionError(f"the session was closed before step {step.number} began")
                self._progress = progress
            progress.begin()
            outputs = step.collect(progress.wait())
            self._idle = True
            return outputs
        finally:
            progress.cancel()
            self._progress = None  # it holds the step's inputs

    def close(self) -> None:
        """End the threads; those that a failure left in the middle of a call are waited for the grace time."""
        with self._lock:
            self._closed = True
            progress = self._progress
        if progress is not None:
            number = progress.step.number
            progress.fail(SessionError(f"the session was closed in the middle of step {number}"))
        _tell_to_end(self._queues)
        self._forgotten.detach()
        until = None if self._idle else time.monotonic() + min(self._grace, _LONGEST)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(None if until is None else max(0.0, until - time.monotonic()))

    def _start_threads(
        self,
        deployment: Deployment,
        devices: Mapping[str, Sequence[str]],
        built: SimpleQueue[BaseException | None],
    ) -> None:
        for node, queues in self._queues.items():
            declared, given = deployment.graph[node].replicas, devices.get(node)
            for replica, queue in enumerate(queues):
                device = given[replica % len(given)] if given else None
                context = ReplicaContext(node, replica, declared, device)
                thread = threading.Thread(
                    target=serve,
                    args=(deployment, context, queue, built),
                    name=f"{node}.{replica}",
                    daemon=True,
                )
                try:
                    thread.start()
                except RuntimeError as error:
                    if isinstance(error.__context__, KeyboardInterrupt):
                        raise error.__context__ from None  # Python's own lock broke under the interruption
                    asked = sum(deployment.replicas.values())
                    raise CapacityError(
                        f"the plan asks for {asked} replicas, each a thread, and the machine refused thread "
                        f"{len(self._threads) + 1} ({error}). Declare fewer replicas or raise the limits on threads"
                    ) from error
                self._threads.append(thread)


def _tell_to_end(queues: Mapping[str, Sequence[SimpleQueue[Work]]]) -> None:
    for own in queues.values():
        for queue in own:
            queue.put(None)


def _raise_if_any(error: BaseException | None) -> None:
    if error is not None:
        try:
            raise error
        finally:
            del error  # or its traceback and this frame would keep each other, and all replicas, alive
