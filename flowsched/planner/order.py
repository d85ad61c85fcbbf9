"""Pass 4, order: each replica's queue, and one order of all calls that no queue contradicts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from flowsched.graph import Graph
from flowsched.graph.rows import NodeRows
from flowsched.graph.topology import topological_order
from flowsched.plan.table import Int32, Int64
from flowsched.planner.cut import Calls, blocks
from flowsched.planner.route import Feeds


@dataclass(frozen=True, eq=False)
class Order:
    """The order of all calls.

    Attributes:
        position: (calls,) place in the replica's queue, over all nodes that the replica serves.
        sequence: (calls,) place in the order of all calls.
    """

    position: Int32
    sequence: Int64


@dataclass(frozen=True, eq=False)
class _Queues:
    """The queues of replicas that serve several nodes, as far as they are filled.

    Attributes:
        length: (used replicas,) calls in the queue.
        needed: (used replicas,) samples that the last of them needs.
    """

    length: Int32
    needed: Int64


def order_calls(
    graph: Graph, rows: Mapping[str, NodeRows], calls: Calls, feeds: Feeds, samples: int
) -> Order:
    """Order the calls of all nodes.

    A replica that serves several nodes works them off one after the other, producers first, so that it never
    waits in the middle of one node for what another replica makes of it. Over all replicas, calls are ordered
    by how many of the step's samples must have been read before they can start: early samples flow through
    the whole graph first, which keeps few batches alive.

    Args:
        graph: the graph.
        rows: rows of each node per sample.
        calls: the calls of all nodes.
        feeds: what they read.
        samples: samples of the step.
    """
    order = topological_order(graph)
    needed, position = np.empty_like(calls.stop), calls.wave.copy()
    shared = {node.replicas_of for node in graph if node.replicas_of is not None}
    queues = {
        name: _Queues(np.zeros(used, np.int32), np.zeros(used, np.int64))
        for name, used in _used_replicas(graph, shared, calls).items()
    }
    for index in order:
        _find_needed(graph, index, rows, calls, feeds, needed)
        owner = graph.owner(graph.nodes[index].name).name
        if owner in shared:
            own = calls.of(index)
            _append(queues[owner], calls.replica[own], position[own], needed[own])
    _number(needed, [calls.of(index) for index in order], samples)
    return Order(position, needed)


def _used_replicas(graph: Graph, owners: Collection[str], calls: Calls) -> dict[str, int]:
    """Return how many replicas of each owner have calls: they are the first ones, and may be few of them."""
    used = dict.fromkeys(owners, 0)
    for index, node in enumerate(graph):
        owner = node.replicas_of or node.name
        if owner in used:
            used[owner] = max(used[owner], int(calls.replica[calls.of(index)].max(initial=-1)) + 1)
    return used


def _find_needed(
    graph: Graph, index: int, rows: Mapping[str, NodeRows], calls: Calls, feeds: Feeds, needed: Int64
) -> None:
    """Write how many samples must have been read before each call of a node has all that it waits for."""
    node = graph.nodes[index]
    read, width = rows[node.name].read, len(node.inputs)
    after = max((needed[calls.of(graph.index(name))].max(initial=0) for name in node.after), default=0)
    for block in blocks(calls.of(index)):
        own = needed[block]
        own[:] = -(-calls.stop[block] * read.denominator // read.numerator)
        np.maximum(own, after, out=own)
        feed = feeds.offsets[index] + (block.start - calls.offsets[index]) * width
        ending = feeds.feed[feed + 1 : feed + 1 + len(own) * width].reshape(-1, width)
        for i, name in enumerate(node.inputs):
            if name not in graph.sources:
                np.maximum(own, needed[feeds.producer[ending[:, i] - 1]], out=own)


def _append(queues: _Queues, replica: Int32, position: Int32, needed: Int64) -> None:
    """Put a node's calls, in place, behind those that their replicas have already."""
    position += queues.length[replica]
    np.maximum(needed, queues.needed[replica], out=needed)
    np.maximum.accumulate(needed, out=needed)
    # Both rise, and of several assignments to one replica the last one stays.
    queues.length[replica] = position + 1
    queues.needed[replica] = needed


def _number(needed: Int64, nodes: Sequence[slice], samples: int) -> None:
    """Replace what calls need by their place in the order of all calls: by need, where equal producers first.

    What the calls of a node need rises. So all calls that need a certain range of samples are sorted together,
    one range after the other, which takes memory for few calls at a time.

    Args:
        needed: (calls,) samples that each call needs, at most ``samples``.
        nodes: the calls of each node, producers first.
        samples: samples of the step.
    """
    ranges = len(list(blocks(slice(0, len(needed)))))
    limits = [samples * at // ranges for at in range(1, ranges)]
    edges = [[own.start, *(own.start + np.searchsorted(needed[own], limits)), own.stop] for own in nodes]
    numbered = 0
    for at in range(ranges):
        parts = [needed[edge[at] : edge[at + 1]] for edge in edges]
        joined = np.concatenate(parts)
        place = np.empty_like(joined)
        # A stable (merging) sort of these few rising runs is nearly linear.
        place[np.argsort(joined, kind="stable")] = np.arange(numbered, numbered + len(joined))
        start = 0
        for part in parts:
            part[:] = place[start : start + len(part)]
            start += len(part)
        numbered += len(joined)
