"""The backend as the core sees it: options in, live replicas out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from flowsched.backend import Backend, Deployment, Feature
from flowsched.errors import BackendError, say_known
from flowsched_threads.capacity import refuse_too_many, threads_left
from flowsched_threads.replicas import Replicas


class ThreadsBackend(Backend):
    """Runs every replica as a thread of this process.

    Right for workers that wait or compute outside the interpreter's lock (numpy, torch, requests to a server),
    for one machine, and for tests: there is nothing to install and data moves by reference. Workers share the
    process, and must not write into the batches that they read.

    Args:
        devices: for a node that has replicas of its own, the devices that its replicas are given in turn as
            ``context.device``, e.g. ``{"policy": ["cuda:0", "cuda:1"]}``.
        grace: seconds that closing waits for workers that a failure or an interruption left in a call.
            Python cannot stop a thread; one that takes longer ends by itself when its call returns.

    Raises:
        BackendError: an option is not one of these.
    """

    name: ClassVar[str] = "threads"
    lacks: ClassVar[frozenset[Feature]] = frozenset({Feature.ISOLATION})

    def __init__(self, devices: Mapping[str, Sequence[str]] | None = None, grace: float = 0.25) -> None:
        if devices is not None and not isinstance(devices, Mapping):
            raise BackendError(
                f"devices is {devices!r}. Give the devices of each node, e.g. devices={{'policy': ['cuda:0']}}"
            )
        self._devices = dict(devices or {})
        for node, given in self._devices.items():
            if not isinstance(given, list | tuple) or not given:
                raise BackendError(
                    f"devices of node {node!r} are {given!r}. Give a list of at least one device for its replicas"
                )
        if not isinstance(grace, int | float) or not grace >= 0:
            raise BackendError(f"grace is {grace!r} ({type(grace).__name__}). Give seconds, 0 or more")
        self._grace = grace

    def start(self, deployment: Deployment) -> Replicas:
        """Build all replicas in parallel, each in its own thread."""
        for node in self._devices:
            if node not in deployment.replicas:
                mend = say_known(str(node), list(deployment.replicas), "nodes with replicas of their own")
                raise BackendError(f"devices names {node!r}, which has no replicas of its own. {mend}")
        refuse_too_many(sum(deployment.replicas.values()))
        return Replicas(deployment, self._devices, self._grace)

    @classmethod
    def describe(cls) -> Mapping[str, Any]:
        """Return how many threads can still be started."""
        left = threads_left()
        return {"threads_left": min(left.values())} if left else {}
