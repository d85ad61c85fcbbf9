"""The processes of actors: started anew, or taken from those that an earlier session left idle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ray

from flowsched_ray.actor import ReplicaActor
from flowsched_ray.options import NodeOptions

_ANSWERS = (
    2.0  # seconds within which an idle actor says that it has forgotten its session, also on a busy machine
)
_Kind = tuple[type[ReplicaActor], NodeOptions]


class Processes:
    """Starts actors, and keeps idle ones for the next session of the same backend object where that is asked for.

    Args:
        reuse: whether to keep any.
        task_events: whether Ray records each call.

    Attributes:
        reuse: likewise.
    """

    def __init__(self, reuse: bool, task_events: bool) -> None:
        self.reuse = reuse
        self._task_events = task_events
        self._idle: list[tuple[_Kind, Any]] = []
        self._job: str | None = None

    def take(self, kind: type[ReplicaActor], options: NodeOptions, place: Any, begin: Sequence[Any]) -> Any:
        """Return an actor that is to be one replica.

        Args:
            kind: its class.
            options: what it asks for.
            place: Ray's scheduling strategy; None for as Ray likes.
            begin: the arguments of its constructor.
        """
        actor = self._take_idle((kind, options)) if place is None else None
        if actor is None:
            return self._start(kind, options, place, begin)
        actor.begin.remote(*begin)
        return actor

    def give_back(self, kind: type[ReplicaActor], actors: Sequence[tuple[NodeOptions, Any]]) -> None:
        """Keep those actors that answer at once, where that is asked for, and kill the others."""
        answers = {actor.forget.remote(): (options, actor) for options, actor in actors if self.reuse}
        ready = ray.wait(list(answers), num_returns=len(answers), timeout=_ANSWERS)[0] if answers else []
        kept = {id(answers[ref][1]) for ref in ready if _is_well(ref)}
        for options, actor in actors:
            if id(actor) in kept and options == NodeOptions():  # others hold what others may ask for
                self._idle.append(((kind, options), actor))
            else:
                ray.kill(actor, no_restart=True)

    def end(self) -> None:
        """Kill the idle actors."""
        idle, self._idle = self._idle, []
        for _, actor in idle if ray.is_initialized() and self._is_same_job() else []:
            ray.kill(actor, no_restart=True)

    def _start(self, kind: type[ReplicaActor], options: NodeOptions, place: Any, begin: Sequence[Any]) -> Any:
        remote: Any = ray.remote
        made = remote(kind) if kind.threads is None else remote(concurrency_groups=kind.threads)(kind)
        return made.options(
            num_cpus=options.num_cpus,
            num_gpus=options.num_gpus,
            resources=dict(options.resources or {}),
            max_restarts=options.max_restarts,
            max_task_retries=options.max_task_retries,
            runtime_env=options.runtime_env and dict(options.runtime_env),
            scheduling_strategy=place or "DEFAULT",
            enable_task_events=self._task_events,
        ).remote(*begin)

    def _take_idle(self, kind: _Kind) -> Any:
        if not self._is_same_job():
            self._idle.clear()
        for at, (known, actor) in enumerate(self._idle):
            if known == kind:
                del self._idle[at]
                return actor
        return None

    def _is_same_job(self) -> bool:
        """Whether this process is still connected to Ray as when the idle actors were started."""
        before, self._job = self._job, ray.get_runtime_context().get_job_id()
        return before == self._job


def _is_well(ref: Any) -> bool:
    try:
        ray.get(ref)
    except ray.exceptions.RayError:
        return False
    return True
