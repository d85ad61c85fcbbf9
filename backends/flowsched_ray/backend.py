"""The backend as the core sees it: options in, live replicas out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

from flowsched.backend import Backend, Deployment, Feature, Running
from flowsched.backend.features import refuse_lacking
from flowsched.errors import BackendError
from flowsched_ray.options import Options

_LEAST = (2, 60)
_INSTALL = 'pip install "flowsched[ray]"'
if TYPE_CHECKING:
    from flowsched_ray.processes import Processes

LACKS_COMPILED = frozenset({Feature.AFTER, Feature.OBSERVER})
_SHARE = 0.3  # of the object store's capacity, that outputs may take by default


class RayBackend(Backend):
    """Runs every replica as a Ray actor, on this machine or on a cluster.

    Data goes from actor to actor through Ray's object store, each call fetching only the rows that it reads; this
    process touches only the inputs and outputs of a step. Where an option takes a value for each node, give one
    value for all nodes, or a mapping of node to value.

    Args:
        address: of the cluster to join, e.g. ``"auto"`` or ``"10.0.0.1:6379"``. Without it, the connection that
            this process has is used, else the cluster that ``RAY_ADDRESS`` names, else Ray is started here, and
            shut down with the session.
        num_cpus: CPUs of each replica of a node, fractions too; by default none are asked for, so that any number
            of replicas starts and they share what there is, as Ray's own actors do.
        num_gpus: GPUs of each replica of a node, fractions too. ``context.device`` is then ``"cuda:0"``, the
            first of those that the replica was given.
        resources: custom resources of each replica, e.g. ``{"fast_disk": 1}`` or ``{"policy": {"fast_disk": 1}}``.
        placement: how the replicas of a node are spread over machines: ``"PACK"``, ``"SPREAD"``,
            ``"STRICT_PACK"`` (one machine) or ``"STRICT_SPREAD"`` (each on a machine of its own).
        colocate: lists of nodes, e.g. ``[["policy", "reference"]]``: replica ``i`` of each is placed together.
        runtime_env: Ray's runtime environment of the replicas, for all nodes or by node.
        max_restarts: how often a replica that was lost is restarted (its constructor runs again); -1 for always.
        max_task_retries: how often a call whose replica was lost is run again; -1 for always. Without it, a replica
            that is lost in a call fails the step, restarted or not.
        compiled: whether each plan becomes one Ray compiled graph, which costs seconds once and then about half of
            what tasks cost. For actors that have a core each: as long as a graph is loaded, Ray has all of them
            wait for their inputs busily. All calls of a step must fit at once: a graph holds none back for
            ``max_in_flight`` or ``max_bytes``. One graph is loaded at a time, so that steps should be of one size.
            Nodes ``after`` others, observers and restarts are not to be had. Workers run in a thread beside the
            main one, and each call copies what it reads.
        max_bytes: the most bytes of outputs in the object store that are still read at once; by default 30 % of
            the store. A call that makes more on its own still runs.
        start_timeout: seconds that Ray may take to place and start one more replica, or to load a compiled graph,
            before it is an error.
        grace: seconds that closing gives workers which a failure left in a call, before it kills them.
        reuse: whether idle processes of replicas that ask for nothing are kept for the next session of this very
            object, which saves about a second for each. Replicas are built anew; modules that their workers
            loaded stay loaded. They end with the connection to Ray, or by :meth:`close`.
        log_to_driver: whether what workers print is shown here.
        task_events: whether Ray records each call for its own dashboard and time line, which costs a few percent of
            a step; an observer is told of the same calls.

    Raises:
        BackendError: an option is not one of these.
    """

    name: ClassVar[str] = "ray"

    def __init__(
        self,
        address: str | None = None,
        *,
        num_cpus: float | Mapping[str, float] | None = None,
        num_gpus: float | Mapping[str, float] | None = None,
        resources: Mapping[str, float] | Mapping[str, Mapping[str, float]] | None = None,
        placement: str | Mapping[str, str] | None = None,
        colocate: Sequence[Sequence[str]] = (),
        runtime_env: Mapping[str, Any] | None = None,
        max_restarts: int | Mapping[str, int] = 0,
        max_task_retries: int | Mapping[str, int] = 0,
        compiled: bool = False,
        max_bytes: int | None = None,
        start_timeout: float = 120.0,
        grace: float = 0.5,
        reuse: bool = False,
        log_to_driver: bool = True,
        task_events: bool = False,
    ) -> None:
        if address is not None and (not isinstance(address, str) or not address):
            raise BackendError(f"address is {address!r}. Give that of a Ray cluster, e.g. '10.0.0.1:6379'")
        self._address = address
        self._options = Options(
            num_cpus, num_gpus, resources, max_restarts, max_task_retries, runtime_env, placement, colocate
        )
        if max_bytes is not None:
            _refuse_no_number("max_bytes", max_bytes, "bytes", least=1)
        _refuse_no_number("start_timeout", start_timeout, "seconds", least=0)
        _refuse_no_number("grace", grace, "seconds", least=0)
        self._max_bytes, self._start_timeout, self._grace = max_bytes, start_timeout, grace
        switches = {
            "compiled": compiled,
            "reuse": reuse,
            "log_to_driver": log_to_driver,
            "task_events": task_events,
        }
        for switch, value in switches.items():
            if not isinstance(value, bool):
                raise BackendError(f"{switch} is {value!r} ({type(value).__name__}). Give True or False")
        self._log_to_driver, self._task_events = log_to_driver, task_events
        self._compiled, self._reuse = compiled, reuse
        self._processes: Processes | None = None
        if compiled:
            _refuse_restarts(max_restarts)

    def start(self, deployment: Deployment) -> Running:
        """Connect to Ray, refuse what it cannot hold, and build all replicas in parallel."""
        self._options.refuse_unknown([node.name for node in deployment.graph.owners()])
        if self._compiled:
            refuse_lacking("ray with compiled=True", LACKS_COMPILED, deployment.graph, deployment.observer)
        if (problem := self.problem()) is not None:
            raise BackendError(problem)
        return self._start(deployment)

    def close(self) -> None:
        """End the processes that were kept for the next session; see ``reuse``."""
        if self._processes is not None:
            self._processes.end()

    def _start(self, deployment: Deployment) -> Running:
        import ray

        from flowsched_ray.actor import ReplicaActor
        from flowsched_ray.compiled_actor import CompiledActor
        from flowsched_ray.compiled_running import CompiledRunning
        from flowsched_ray.connection import connect
        from flowsched_ray.processes import Processes
        from flowsched_ray.replicas import Replicas
        from flowsched_ray.running import RayRunning

        disconnect = connect(self._address, self._log_to_driver)
        try:
            kind = CompiledActor if self._compiled else ReplicaActor
            self._processes = self._processes or Processes(self._reuse, self._task_events)
            replicas = Replicas(deployment, self._options, self._start_timeout, self._processes, kind)
            resources: Any = ray.cluster_resources
            store = resources().get("object_store_memory", float("inf"))
            room = _SHARE * store if self._max_bytes is None else self._max_bytes
        except BaseException:
            disconnect()
            raise
        if self._compiled:
            return CompiledRunning(
                replicas, room=room, patience=self._start_timeout, grace=self._grace, disconnect=disconnect
            )
        return RayRunning(replicas, deployment, room=room, grace=self._grace, disconnect=disconnect)

    @classmethod
    def problem(cls) -> str | None:
        """Return why Ray cannot be used here and the command that mends it, or None."""
        if find_spec("ray") is None:
            return f"Ray is not installed. Install it: {_INSTALL}"
        if find_spec("cloudpickle") is None:
            return f"cloudpickle is not installed. Install it: {_INSTALL}"
        found = _ray_version()
        if found is not None and _numbers(found) < _LEAST:
            least = ".".join(map(str, _LEAST))
            return f"Ray {found} is older than {least}. Install a newer one: pip install --upgrade 'ray>={least}'"
        return None

    @classmethod
    def describe(cls) -> Mapping[str, Any]:
        """Return the version of Ray, and whether it offers compiled graphs."""
        found = _ray_version()
        if found is None:
            return {}
        return {"ray": found, "compiled_graphs": find_spec("ray.dag") is not None}


def _refuse_restarts(max_restarts: int | Mapping[str, int]) -> None:
    given = max_restarts.values() if isinstance(max_restarts, Mapping) else [max_restarts]
    if any(given):
        raise BackendError(
            f"max_restarts is {max_restarts!r} and compiled is True, and Ray restarts no actor of a compiled "
            "graph. Leave one of them out"
        )


def _ray_version() -> str | None:
    try:
        return version("ray")
    except PackageNotFoundError:
        return None


def _numbers(said: str) -> tuple[int, ...]:
    return tuple(int(part) for part in said.split(".")[:2] if part.isdigit())


def _refuse_no_number(name: str, value: object, unit: str, least: float) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not value >= least:
        raise BackendError(f"{name} is {value!r} ({type(value).__name__}). Give {unit}, {least:g} or more")
