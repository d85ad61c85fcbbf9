"""The threads themselves: built together, fed calls, ended together."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from queue import SimpleQueue
from typing import Any

from flowsched.backend import Deployment, Outputs, ReplicaContext, Running, Step
from flowsched.errors import BuildError, CapacityError
from flowsched.events import CallEnded, ReplicaBuilt
from flowsched_threads.progress import StepProgress

_Work = tuple[StepProgress, int] | None


class Replicas(Running):
    """One thread for each replica, which takes calls from a queue of its own until it is given None."""

    def __init__(self, deployment: Deployment, devices: Mapping[str, Sequence[str]], grace: float) -> None:
        self._deployment = deployment
        self._devices = devices
        self._grace = grace
        self._queues: dict[str, list[SimpleQueue[_Work]]] = {}
        self._threads: list[threading.Thread] = []
        self._progress: StepProgress | None = None
        built: SimpleQueue[BaseException | None] = SimpleQueue()
        try:
            self._start_threads(built)
            for _ in self._threads:
                error = built.get()
                if error is not None:
                    raise error
        except BaseException:
            self.close()
            raise

    def run(self, step: Step) -> Outputs:
        """Execute one step; see :meth:`flowsched.backend.Running.run`."""
        self._progress = progress = StepProgress(step, self._queues)
        try:
            return step.collect(progress.wait())
        finally:
            progress.cancel()

    def close(self) -> None:
        """End the threads, waiting for calls under way at most the grace time."""
        if self._progress is not None:
            self._progress.cancel()
        for queues in self._queues.values():
            for queue in queues:
                queue.put(None)
        until = time.monotonic() + self._grace
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        self._queues.clear()

    def _start_threads(self, built: SimpleQueue[BaseException | None]) -> None:
        for node, count in self._deployment.replicas.items():
            self._queues[node] = [SimpleQueue() for _ in range(count)]
            for replica, queue in enumerate(self._queues[node]):
                thread = threading.Thread(
                    target=self._serve,
                    args=(node, replica, queue, built),
                    name=f"{node}.{replica}",
                    daemon=True,
                )
                try:
                    thread.start()
                except RuntimeError as error:
                    asked = sum(self._deployment.replicas.values())
                    raise CapacityError(
                        f"the plan asks for {asked} replicas, each a thread, and the machine refused thread "
                        f"{len(self._threads) + 1} ({error}). Declare fewer replicas or raise the limits on threads"
                    ) from error
                self._threads.append(thread)

    def _serve(
        self, node: str, replica: int, queue: SimpleQueue[_Work], built: SimpleQueue[BaseException | None]
    ) -> None:
        """Build a replica, then work off its queue."""
        devices = self._devices.get(node)
        device = devices[replica % len(devices)] if devices else None
        workers = self._build(
            ReplicaContext(node, replica, self._deployment.graph[node].replicas, device), built
        )
        if workers is None:
            return
        while (work := queue.get()) is not None:
            progress, call = work
            self._run_calls(progress, call, workers, device)
            del work, progress  # or an idle thread would keep the last step's batches alive

    def _build(
        self, context: ReplicaContext, built: SimpleQueue[BaseException | None]
    ) -> dict[str, Any] | None:
        """Return what is called for each node that the replica serves; None if its constructor raised."""
        began = time.perf_counter()
        binding, graph = self._deployment.binding, self._deployment.graph
        try:
            replica = binding.build(context)
            served = [node.name for node in graph if graph.owner(node.name).name == context.node]
            workers = {name: binding.nodes[name].worker(replica) for name in served}
            if self._deployment.observer is not None:
                seconds = time.perf_counter() - began
                self._deployment.observer(ReplicaBuilt(context.node, context.replica, seconds))
        except BaseException as cause:  # noqa: BLE001 - whatever it is, the main thread raises it
            error = BuildError(
                node=context.node, replica=context.replica, replicas=context.replicas, cause=cause
            )
            error.__cause__ = cause
            built.put(error)
            return None
        built.put(None)
        return workers

    def _run_calls(
        self, progress: StepProgress, call: int, workers: Mapping[str, Any], device: str | None
    ) -> None:
        """Run a call, and those after it in the replica's queue for as long as they are ready."""
        observer = self._deployment.observer
        step = progress.step
        following: int | None = call
        try:
            while following is not None:
                call = following
                batches = step.gather(call, progress.outputs)
                began = time.perf_counter()
                output = step.run(call, workers[step.node_name(call)], batches, device, progress.is_cancelled)
                seconds = time.perf_counter() - began
                del batches  # views keep their whole batch alive
                if observer is not None:
                    observer(CallEnded(step.number, *step.coordinates(call), seconds))
                following = progress.end_call(call, output)
                del output
        except BaseException as error:  # noqa: BLE001 - likewise
            progress.fail(error)
