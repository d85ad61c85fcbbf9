"""The chain of passes: validate, share, cut, route, order, and the table that they fill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from flowsched.graph import Graph
from flowsched.graph.rows import NodeRows
from flowsched.graph.topology import topological_order
from flowsched.plan import Plan, Table
from flowsched.plan.table import Int64
from flowsched.planner.cut import NodeCalls, cut_calls
from flowsched.planner.order import order_calls
from flowsched.planner.route import Feeds, interleave, route_input
from flowsched.planner.share import share_units
from flowsched.planner.validate import validate_sizes


def compile_plan(graph: Graph, samples: int) -> Plan:
    """Compile a graph into the static routing table for steps of ``samples`` samples.

    Any number of samples, replicas and any batch size will do; nothing has to divide anything.

    Raises:
        PlanError: the sizes of two inputs cannot meet, or rows cannot be cut into whole groups.

    >>> from flowsched import Graph, Node
    >>> graph = Graph("ppo", sources=["prompts"], nodes=[
    ...     Node("policy", inputs=["prompts"], replicas=2, batch_size=4),
    ...     Node("reward", inputs=["policy"], replicas=8, batch_size=2),
    ... ])
    >>> print(compile_plan(graph, samples=16)["policy"])
    policy.0.0[0:4] <- prompts[0:4]
    policy.1.0[4:8] <- prompts[4:8]
    policy.0.1[8:12] <- prompts[8:12]
    policy.1.1[12:16] <- prompts[12:16]
    """
    rows = validate_sizes(graph, samples)
    order = topological_order(graph)
    calls = [_cut_node(graph, name, rows[name], samples) for name in (node.name for node in graph.nodes)]
    routes = [_route_node(graph, index, rows, calls, samples) for index in range(len(graph.nodes))]
    between = [
        [None if name in graph.sources else feeds for name, feeds in zip(node.inputs, route, strict=True)]
        for node, route in zip(graph.nodes, routes, strict=True)
    ]
    orders = order_calls(graph, order, rows, calls, between)
    offsets = np.cumsum([0, *(len(own.start) for own in calls)])
    counts, producer, start, stop = _join_feeds(graph, routes, offsets)
    table = Table(
        node=np.repeat(np.arange(len(calls), dtype=np.int32), np.diff(offsets)),
        replica=np.concatenate([own.replica for own in calls]),
        wave=np.concatenate([own.wave for own in calls]),
        position=np.concatenate([own.position for own in orders]),
        start=np.concatenate([own.start for own in calls]),
        stop=np.concatenate([own.stop for own in calls]),
        sequence=np.concatenate([own.sequence for own in orders]),
        feed=np.concatenate([[0], np.cumsum(counts)]),
        producer=producer,
        fragment_start=start,
        fragment_stop=stop,
    )
    return Plan(graph, samples, table)


def _cut_node(graph: Graph, name: str, rows: NodeRows, samples: int) -> NodeCalls:
    node = graph[name]
    share = share_units(int(rows.read * samples) // node.unit, graph.owner(name).replicas)
    return cut_calls(share, node.unit, node.batch_size)


def _route_node(
    graph: Graph, index: int, rows: Mapping[str, NodeRows], calls: Sequence[NodeCalls], samples: int
) -> list[Feeds]:
    node, own = graph.nodes[index], calls[index]
    routes = []
    for name, times in zip(node.inputs, rows[node.name].times, strict=True):
        if name in graph.sources:
            made = np.array([0], np.int64), np.array([samples], np.int64)
        else:
            producer, from_calls = graph[name], calls[graph.index(name)]
            made = (
                from_calls.start // producer.collapse * producer.expand,
                from_calls.stop // producer.collapse * producer.expand,
            )
        routes.append(route_input(own.start, own.stop, *made, times))
    return routes


def _join_feeds(
    graph: Graph, routes: Sequence[Sequence[Feeds]], offsets: Int64
) -> tuple[Int64, Int64, Int64, Int64]:
    """Join the feeds of all nodes, with producers numbered over the whole table."""
    joined: list[tuple[Int64, Int64, Int64, Int64]] = []
    for node, route in zip(graph.nodes, routes, strict=True):
        numbered = []
        for name, feeds in zip(node.inputs, route, strict=True):
            source = name in graph.sources
            shift = -1 - graph.sources.index(name) if source else offsets[graph.index(name)]
            numbered.append(Feeds(feeds.counts, feeds.producer + shift, feeds.start, feeds.stop))
        joined.append(interleave(numbered))
    columns = [np.concatenate(column) for column in zip(*joined, strict=True)]
    return columns[0], columns[1], columns[2], columns[3]
