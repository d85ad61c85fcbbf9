"""What a question about a plan is about: names and numbers as users write them, found in the plan."""

from __future__ import annotations

import re
from operator import index
from typing import SupportsIndex

from flowsched.inspect.errors import ExplainError
from flowsched.plan import Plan

Edge = str | tuple[str, str]
Replica = str | tuple[str, int]

_REPLICA = re.compile(r"\s*(?P<node>[^.\s]+)\.(?P<index>\d{1,18})\s*")


def find_node(plan: Plan, name: object) -> int:
    """Return the index of a node in ``plan.graph.nodes``.

    Raises:
        ExplainError: there is no such node.
    """
    if not isinstance(name, str) or name not in plan.graph:
        raise ExplainError.unknown_node(plan.graph, name)
    return plan.graph.index(name)


def find_edge(plan: Plan, edge: object) -> tuple[int, int]:
    """Return the consumer's index in ``plan.graph.nodes`` and the place of the producer among its inputs.

    Raises:
        ExplainError: it is not written as an edge, or there is no such edge.
    """
    ends = [part.strip() for part in edge.split("->")] if isinstance(edge, str) else edge
    if not isinstance(ends, list | tuple) or len(ends) != 2 or not all(map(_is_name, ends)):
        raise ExplainError.not_an_edge(edge)
    producer, consumer = ends
    if producer not in plan.graph.sources and producer not in plan.graph:
        raise ExplainError.unknown_producer(plan.graph, producer)
    reader = find_node(plan, consumer)
    inputs = plan.graph.nodes[reader].inputs
    if producer not in inputs:
        raise ExplainError.no_edge(plan.graph, producer, consumer)
    return reader, inputs.index(producer)


def find_sample(plan: Plan, sample: object) -> int:
    """Return a sample id.

    Raises:
        ExplainError: it is not a whole number, or the plan has no such sample.
    """
    number = whole(sample)
    if number is None:
        raise ExplainError.not_a_sample(sample)
    if not 0 <= number < plan.samples:
        raise ExplainError.no_such_sample(number, plan.samples)
    return number


def find_replica(plan: Plan, replica: object) -> tuple[str, int]:
    """Return the name of the node that has the replica, and the replica's index.

    Raises:
        ExplainError: it is not written as a replica, or there is no such replica.
    """
    name, place = _parse_replica(replica)
    owner = plan.graph.owner(plan.graph.nodes[find_node(plan, name)].name)
    if not 0 <= place < owner.replicas:
        raise ExplainError.no_such_replica(name, place, owner.replicas)
    return owner.name, place


def _parse_replica(replica: object) -> tuple[str, int]:
    if isinstance(replica, str):
        match = _REPLICA.fullmatch(replica)
        if match:
            return match["node"], int(match["index"])
    elif isinstance(replica, list | tuple) and len(replica) == 2:
        name, place = replica[0], whole(replica[1])
        if isinstance(name, str) and place is not None:
            return name, place
    raise ExplainError.not_a_replica(replica)


def _is_name(end: object) -> bool:
    return isinstance(end, str) and bool(end)


def whole(value: object) -> int | None:
    """Return a whole number of any integer type, numpy's too; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return None
    try:
        return index(value)
    except TypeError:  # an array says that it has an index, and has one only where it holds one number
        return None
