"""What the thread of one replica does: build the replica, then work off its queue."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from typing import Any, TypeAlias

from flowsched.backend import Deployment, Links, ReplicaContext
from flowsched.events import CallEnded, Observer, ReplicaBuilt
from flowsched_threads.progress import StepProgress

Work: TypeAlias = tuple[StepProgress, Links] | None
"""A call to run, as its step and what it has to do with others; None ends the replica."""

_Workers: TypeAlias = Mapping[int, Callable[..., Any]]  # by index of the node


def serve(
    deployment: Deployment,
    context: ReplicaContext,
    queue: SimpleQueue[Work],
    built: SimpleQueue[BaseException | None],
) -> None:
    """Build a replica, tell ``built`` that it is there or what went wrong, and work off its queue."""
    try:
        workers = _build(deployment, context)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the main thread raises it
        built.put(error)
        return
    built.put(None)
    while (work := queue.get()) is not None:
        progress, links = work
        _run_calls(progress, links, workers, context.device, deployment.observer)
        del work, progress  # or an idle thread would keep the last step's batches alive


def _build(deployment: Deployment, context: ReplicaContext) -> _Workers:
    """Return what is called for each node that the replica serves.

    Raises:
        BuildError: its constructor raised.
        BaseException: whatever the observer raises.
    """
    began = time.perf_counter()
    workers = deployment.binding.build_workers(deployment.graph, context)
    if deployment.observer is not None:
        deployment.observer(ReplicaBuilt(context.node, context.replica, time.perf_counter() - began))
    return workers


def _run_calls(
    progress: StepProgress, first: Links, workers: _Workers, device: str | None, observer: Observer | None
) -> None:
    """Run a call, and those after it in the replica's queue for as long as they are ready."""
    step = progress.step
    links: Links | None = first
    try:
        while links is not None and not progress.cancelled:
            batches = step.gather(links, progress.outputs)
            began = time.perf_counter() if observer is not None else 0.0
            output = step.run(links, workers[links.node], batches, device, progress.is_cancelled)
            del batches  # views keep their whole batch alive
            if observer is not None:
                seconds = time.perf_counter() - began
                observer(CallEnded(step.number, *step.coordinates(links.call), seconds))
            links = progress.end_call(links, output)
            del output
    except BaseException as error:  # noqa: BLE001 - likewise
        progress.fail(error)
