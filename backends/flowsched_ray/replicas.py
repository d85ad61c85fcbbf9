"""The actors: placed, started and built together, and ended together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from flowsched.backend import Binding, Deployment, pack_object
from flowsched.errors import CapacityError
from flowsched.events import ReplicaBuilt
from flowsched_ray.actor import ReplicaActor
from flowsched_ray.capacity import Demand, look_at_cluster, refuse_too_much, say_refusal
from flowsched_ray.failures import explain_lost_while_built
from flowsched_ray.options import NodeOptions, Options
from flowsched_ray.processes import Processes

_LEAST = {"CPU": 0.001}  # a bundle of a placement group must ask for something


@dataclass(frozen=True)
class Replica:
    """One actor.

    Attributes:
        node: name of the node that owns it.
        index: its index among the node's replicas.
        actor: Ray's handle of it.
        may_restart: whether Ray restarts it when it is lost.
    """

    node: str
    index: int
    actor: Any
    may_restart: bool


class Replicas:
    """All actors of a session, with the placement groups that hold them. Nothing is left if making it fails.

    Args:
        deployment: what is to be brought up.
        options: what its replicas ask for.
        patience: seconds that Ray may take to place and start one more.
        processes: where actors come from and go to.
        kind: class of the actors.

    Raises:
        CapacityError: the cluster cannot hold them, or did not start them in time.
        BuildError: a constructor raised; its exception is the cause.
        ReplicaLostError: an actor died while it was built.
    """

    def __init__(
        self,
        deployment: Deployment,
        options: Options,
        patience: float,
        processes: Processes,
        kind: type[ReplicaActor] = ReplicaActor,
    ) -> None:
        self.all: list[Replica] = []
        self._groups: list[Any] = []
        self._packed: list[Any] = []  # which a replica that is restarted reads again
        self._patience = patience
        self._processes, self._kind = processes, kind
        owners = [node.name for node in deployment.graph.owners()]
        self._options = {node: options.of(node, owners) for node in owners}
        grouped = list(options.groups(owners))
        demands = list(_find_demands(deployment.replicas, self._options, grouped))
        refuse_too_much(demands)
        try:
            places = self._reserve(deployment.replicas, grouped, demands)
            self._start(deployment, places)
            self._build(deployment, demands)
        except BaseException:
            self.end()
            raise

    def __getitem__(self, place: tuple[str, int]) -> Replica:
        return self._by_place[place]

    @property
    def are_reused(self) -> bool:
        """Whether actors are kept for another session."""
        return self._processes.reuse

    def kill(self) -> None:
        """Kill all actors, whatever they are in the middle of; :meth:`end` is still to be called."""
        for replica in self.all:
            ray.kill(replica.actor, no_restart=True)
        self.all = []

    def end(self) -> None:
        """Kill all actors, or keep them for another session, and give their places back."""
        actors = [(self._options[replica.node], replica.actor) for replica in self.all]
        self._processes.give_back(self._kind, actors)
        self.all = []
        for group in self._groups:
            remove_placement_group(group)
        self._groups = []

    def _reserve(
        self,
        replicas: Mapping[str, int],
        grouped: Sequence[tuple[tuple[str, ...], str]],
        demands: Sequence[Demand],
    ) -> dict[tuple[str, int], Any]:
        """Return, by node and index, where Ray is to place a replica that is not free to go anywhere."""
        places: dict[tuple[str, int], Any] = {}
        waiting: dict[str, Any] = {}
        for nodes, strategy in grouped:
            bundles = _bundles(nodes, replicas, self._options)
            if not bundles:
                continue
            group = placement_group([each or _LEAST for each in bundles], strategy=strategy)
            self._groups.append(group)
            waiting[f"the {strategy} group of {' + '.join(nodes)}"] = group
            for node in nodes:
                for index in range(replicas.get(node, 0)):
                    places[node, index] = PlacementGroupSchedulingStrategy(
                        group, placement_group_bundle_index=index
                    )
        until = time.monotonic() + self._patience
        for name, group in waiting.items():
            if not group.wait(max(0.1, until - time.monotonic())):
                said = f"Ray did not place {name} in {self._patience:g} s"
                raise CapacityError(say_refusal(said, demands, look_at_cluster()))
        return places

    def _start(self, deployment: Deployment, places: Mapping[tuple[str, int], Any]) -> None:
        graph, binding = deployment.graph, deployment.binding
        for node, count in deployment.replicas.items():
            own = Binding({node: binding.models[node]}, binding.nodes)
            packed = ray.put(pack_object((graph, own), f"the model of node {node!r}"))
            self._packed.append(packed)
            options, declared = self._options[node], graph[node].replicas
            for index in range(count):
                begin = packed, node, index, declared
                actor = self._processes.take(self._kind, options, places.get((node, index)), begin)
                self.all.append(Replica(node, index, actor, options.max_restarts != 0))
        self._by_place = {(replica.node, replica.index): replica for replica in self.all}

    def _build(self, deployment: Deployment, demands: Sequence[Demand]) -> None:
        """Wait until all are built, or the first fails, or none more starts in time."""
        arriving = {replica.actor.arrive.remote(): replica for replica in self.all}
        building = {replica.actor.build.remote(): replica for replica in self.all}
        while building:
            patience = self._patience if arriving else None
            ready, _ = ray.wait([*arriving, *building], num_returns=1, timeout=patience)
            if not ready:
                raise self._say_late(list(arriving.values()), demands)
            if ready[0] in arriving:
                self._get(ready[0], arriving.pop(ready[0]))
                continue
            replica = building.pop(ready[0])
            seconds = self._get(ready[0], replica)
            if deployment.observer is not None:
                deployment.observer(ReplicaBuilt(replica.node, replica.index, seconds))

    def _say_late(self, late: Sequence[Replica], demands: Sequence[Demand]) -> CapacityError:
        names = ", ".join(f"{replica.node}.{replica.index}" for replica in late[:8])
        said = f"Ray started {len(self.all) - len(late)} of {len(self.all)} replicas, and none of the others "
        said += f"within {self._patience:g} s ({names}{', ...' if len(late) > 8 else ''})"
        return CapacityError(say_refusal(said, demands, look_at_cluster()))

    def _get(self, ref: Any, replica: Replica) -> Any:
        try:
            return ray.get(ref)
        except ray.exceptions.RayError as error:
            found = explain_lost_while_built(error, replica.node, replica.index)
        raise found  # here, so that its cause stays its own


def _find_demands(
    replicas: Mapping[str, int],
    options: Mapping[str, NodeOptions],
    grouped: Sequence[tuple[tuple[str, ...], str]],
) -> Iterator[Demand]:
    together = {node for nodes, _ in grouped for node in nodes}
    for node, count in replicas.items():
        if node not in together and count:
            yield Demand((node,), count, options[node].demand, None)
    for nodes, strategy in grouped:
        bundles = _bundles(nodes, replicas, options)
        for each in {tuple(sorted(bundle.items())) for bundle in bundles}:
            count = sum(1 for bundle in bundles if tuple(sorted(bundle.items())) == each)
            yield Demand(nodes, count, dict(each), strategy)


def _bundles(
    nodes: Sequence[str], replicas: Mapping[str, int], options: Mapping[str, NodeOptions]
) -> list[dict[str, float]]:
    """Return the resources of each bundle: what replica ``i`` of each of the nodes asks for, added up."""
    bundles: list[dict[str, float]] = [{} for _ in range(max(replicas.get(node, 0) for node in nodes))]
    for node in nodes:
        for bundle in bundles[: replicas.get(node, 0)]:
            for name, amount in options[node].demand.items():
                bundle[name] = bundle.get(name, 0) + amount
    return bundles


Submit = Callable[..., Any]


def prepare_call(replica: Replica, objects: int, lesson: Any) -> tuple[Submit, Submit | None]:
    """Return what submits a call of a replica that returns so many objects.

    Returns:
        What submits it given its head and fragments; and what does given fragments alone, where the call comes as
        it did in the step before, which an actor that may have been restarted does not know.
    """
    if not replica.may_restart:
        actor = replica.actor
        run, run_next = actor.run, actor.run_next
        return run.options(num_returns=objects).remote, run_next.options(num_returns=objects).remote
    again = replica.actor.run_or_learn.options(num_returns=objects).remote
    holder = [lesson]  # inside a list it stays a reference, which only an actor that was restarted follows
    return lambda head, *fragments: again(head, holder, *fragments), None
