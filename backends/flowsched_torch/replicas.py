"""The replicas of one rank: built once, called by node and replica."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from flowsched.backend import Binding, ReplicaContext
from flowsched.events import ReplicaBuilt
from flowsched.graph import Graph
from flowsched_torch.steps import Workers


def build_replicas(
    graph: Graph,
    binding: Binding,
    served: Mapping[str, Sequence[int]],
    device_of: Callable[[str, int], str | None],
    tell: Callable[[ReplicaBuilt], None],
    note: Callable[[int], None],
) -> Workers:
    """Build the replicas that a rank serves, one after the other.

    Args:
        graph: the graph.
        binding: its models.
        served: the replicas to build, by the name of their node.
        device_of: the device of a node's replica.
        tell: is told of each replica that is there.
        note: is called with the place of each replica among those of the rank before it is built.

    Raises:
        BuildError: a constructor raised; its exception is the cause.
    """
    workers = {}
    count = 0
    for name, replicas in served.items():
        for number in replicas:
            note(count)
            count += 1
            began = time.perf_counter()
            device, declared = device_of(name, number), graph[name].replicas
            built = binding.build_workers(graph, ReplicaContext(name, number, declared, device))
            workers.update({(node, number): (worker, device) for node, worker in built.items()})
            tell(ReplicaBuilt(name, number, time.perf_counter() - began))
    return workers
