"""The chain of passes: validate, share, cut, route, order, and the table that they fill."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from flowsched.graph import Graph, Node
from flowsched.graph.rows import NodeRows
from flowsched.plan import Plan, Table
from flowsched.plan.table import seal
from flowsched.planner.cut import count_calls, cut_calls
from flowsched.planner.order import order_calls
from flowsched.planner.route import route_calls
from flowsched.planner.share import Share, share_units
from flowsched.planner.validate import validate_calls, validate_sizes


def compile_plan(graph: Graph, samples: int) -> Plan:
    """Compile a graph into the static routing table for steps of ``samples`` samples.

    Any number of samples, replicas and any batch size will do; nothing has to divide anything.

    Raises:
        PlanError: the sizes of two inputs cannot meet, rows cannot be cut into whole groups, or there are more
            than 2**62 rows of a node or more than 2**31 - 1 calls.

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
    shares = [_share_node(graph, node, rows[node.name], samples) for node in graph]
    validate_calls(graph, samples, count_calls(graph, shares))
    calls = cut_calls(graph, shares)
    feeds = route_calls(graph, rows, calls, samples)
    order = order_calls(graph, rows, calls, feeds, samples)
    columns: dict[str, NDArray[Any]] = {
        "node": np.repeat(np.arange(len(graph), dtype=np.int32), np.diff(calls.offsets)),
        "replica": calls.replica,
        "wave": calls.wave,
        "position": order.position,
        "start": calls.start,
        "stop": calls.stop,
        "sequence": order.sequence,
        "feed": feeds.feed,
        "producer": feeds.producer,
        "fragment_start": feeds.start,
        "fragment_stop": feeds.stop,
    }
    table = Table(**{name: seal(column) for name, column in columns.items()})
    return Plan(graph, samples, table)


def _share_node(graph: Graph, node: Node, rows: NodeRows, samples: int) -> Share:
    return share_units(int(rows.read * samples) // node.unit, graph.owner(node.name).replicas)
