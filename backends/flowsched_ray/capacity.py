"""Whether the nodes of a Ray cluster can hold what is asked for, told node by node before anything is placed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ray

from flowsched.errors import CapacityError

Amounts = Mapping[str, float]

_PATIENCE = 3.0  # seconds that what another session has just freed may take to be seen as free
_SLACK = 1e-9


@dataclass(frozen=True)
class Demand:
    """Some places of the same size.

    Attributes:
        who: the nodes of the graph whose replicas take them.
        count: how many.
        each: resources of one of them.
        strategy: how they are spread over the cluster's nodes; None for as Ray likes.
    """

    who: tuple[str, ...]
    count: int
    each: Amounts
    strategy: str | None

    def __str__(self) -> str:
        spread = f", {self.strategy}" if self.strategy else ""
        return f"{self.count} x {' + '.join(self.who)} with {say_amounts(self.each)}{spread}"


@dataclass(frozen=True)
class Machine:
    """A node of the cluster: its address, and its resources in all and free."""

    address: str
    total: Amounts
    free: Amounts

    def __str__(self) -> str:
        shown = {name: amount for name, amount in self.total.items() if _is_for_users(name)}
        said = [
            f"{name} {self.free.get(name, 0):g} of {amount:g} free" for name, amount in sorted(shown.items())
        ]
        return f"{self.address}: {', '.join(said) or 'nothing'}"


def refuse_too_much(demands: Sequence[Demand]) -> None:
    """Refuse what the cluster that this process is connected to cannot hold.

    Raises:
        CapacityError: it names what was asked for and what there is, node by node.
    """
    asked = [demand for demand in demands if demand.each or demand.strategy]
    until = time.monotonic() + _PATIENCE
    while True:
        machines = look_at_cluster()
        if find_obstacle(asked, [machine.total for machine in machines]) is not None:
            obstacle = find_obstacle(asked, [machine.total for machine in machines])
            raise CapacityError(say_refusal(f"{obstacle}", asked, machines))
        obstacle = find_obstacle(asked, [machine.free for machine in machines])
        if obstacle is None:
            return
        if time.monotonic() > until:
            raise CapacityError(say_refusal(f"{obstacle} while others use it", asked, machines))
        time.sleep(0.1)


def find_obstacle(demands: Sequence[Demand], machines: Sequence[Amounts]) -> str | None:
    """Return what cannot be, whatever goes where; None where nothing proves that it cannot."""
    for demand in demands:
        fits = [_count_fits(demand.each, machine) for machine in machines]
        if demand.strategy == "STRICT_PACK":
            room = max(fits, default=0)
        elif demand.strategy == "STRICT_SPREAD":
            room = sum(1 for fit in fits if fit)
        else:
            room = sum(fits)
        if room < demand.count:
            where = {"STRICT_PACK": " on one node", "STRICT_SPREAD": " on a node of its own"}
            return (
                f"{int(room)} of {demand.count} replicas of {' + '.join(demand.who)} can be placed"
                f"{where.get(demand.strategy or '', '')}"
            )
    for name in sorted({name for demand in demands for name in demand.each}):
        wanted = sum(demand.count * demand.each.get(name, 0) for demand in demands)
        there = sum(machine.get(name, 0) for machine in machines)
        if wanted > there + _SLACK:
            return f"{wanted:g} {name} are asked for in all, and there are {there:g}"
    return None


def look_at_cluster() -> list[Machine]:
    """Return the nodes that are alive."""
    state: Any = ray._private.state
    free = state.available_resources_per_node()
    nodes: Any = ray.nodes  # which Ray leaves untyped
    alive = [node for node in nodes() if node["Alive"]]
    return [
        Machine(
            f"{node['NodeManagerAddress']} ({node['NodeID'][:8]})",
            node["Resources"],
            free.get(node["NodeID"], {}),
        )
        for node in alive
    ]


def say_refusal(obstacle: str, asked: Sequence[Demand], machines: Sequence[Machine]) -> str:
    """Return what was asked for and what there is, as the text of an error."""
    lines = [f"the Ray cluster cannot hold the replicas: {obstacle}.", "asked for:"]
    lines += [f"  {demand}" for demand in asked]
    lines += ["there is:", *(f"  {machine}" for machine in machines)]
    lines += [
        "Ask for less (num_cpus=, num_gpus=, resources=, placement=), declare fewer replicas, or add nodes"
    ]
    return "\n".join(lines)


def say_amounts(amounts: Amounts) -> str:
    """Return resources in words."""
    return ", ".join(f"{amount:g} {name}" for name, amount in amounts.items()) or "no resources"


def _count_fits(each: Amounts, machine: Amounts) -> float:
    if not each:
        return float("inf")
    return min(int((machine.get(name, 0) + _SLACK) / amount) for name, amount in each.items())


def _is_for_users(name: str) -> bool:
    return (
        name not in ("memory", "object_store_memory")
        and not name.startswith("node:")
        and "_group_" not in name
    )
