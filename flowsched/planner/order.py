"""Pass 4, order: each replica's queue, and one order of all calls that no queue contradicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from flowsched.graph import Graph
from flowsched.graph.rows import NodeRows
from flowsched.plan.table import Int32, Int64
from flowsched.planner.cut import NodeCalls
from flowsched.planner.route import Feeds


@dataclass(frozen=True, eq=False)
class NodeOrder:
    """The order of one node's calls.

    Attributes:
        position: (calls,) place in the replica's queue.
        sequence: (calls,) place in the order of all calls.
    """

    position: Int32
    sequence: Int64


def order_calls(
    graph: Graph,
    order: Sequence[int],
    rows: Mapping[str, NodeRows],
    calls: Sequence[NodeCalls],
    feeds: Sequence[Sequence[Feeds | None]],
) -> list[NodeOrder]:
    """Order the calls of all nodes.

    A replica that serves several nodes works them off one after the other, producers first, so that it never
    waits in the middle of one node for what another replica makes of it. Over all replicas, calls are ordered
    by how many of the step's samples must have been read before they can start: early samples flow through
    the whole graph first, which keeps few batches alive.

    Args:
        graph: the graph.
        order: indices of its nodes, producers first.
        rows: rows of each node per sample.
        calls: calls of each node, by node index.
        feeds: feeds of each node and input; None where the input is a source.
    """
    keys: list[Int64] = [np.empty(0, np.int64) for _ in graph.nodes]
    queued: dict[str, tuple[Int32, Int64]] = {}
    positions: list[Int32] = [np.empty(0, np.int32) for _ in graph.nodes]
    for index in order:
        node, own = graph.nodes[index], calls[index]
        key = _samples_needed(own, rows[node.name])
        for name, feed in zip(node.inputs, feeds[index], strict=True):
            if feed is not None and len(feed.producer):
                last = feed.producer[np.cumsum(feed.counts) - 1]
                np.maximum(key, keys[graph.index(name)][last], out=key)
        for name in node.after:
            np.maximum(key, keys[graph.index(name)].max(initial=0), out=key)
        owner = graph.owner(node.name)
        if owner.name in queued:
            length, last_key = queued[owner.name]
            np.maximum(key, last_key[own.replica], out=key)
        else:
            length, last_key = np.zeros(owner.replicas, np.int32), np.zeros(owner.replicas, np.int64)
        key = np.maximum.accumulate(key)
        keys[index] = key
        positions[index] = own.wave + length[own.replica]
        queued[owner.name] = _after_calls(own, key, length, last_key)
    return _in_sequence(order, keys, positions)


def _samples_needed(calls: NodeCalls, rows: NodeRows) -> Int64:
    """Return how many samples must have entered the graph before each call has its own rows."""
    return -(-calls.stop * rows.read.denominator // rows.read.numerator)


def _after_calls(calls: NodeCalls, key: Int64, length: Int32, last_key: Int64) -> tuple[Int32, Int64]:
    """Return the queues' lengths and last keys after a node's calls."""
    counts = np.bincount(calls.replica, minlength=len(length)).astype(np.int32)
    last = last_key.copy()
    np.maximum.at(last, calls.replica, key)
    return length + counts, last


def _in_sequence(order: Sequence[int], keys: Sequence[Int64], positions: Sequence[Int32]) -> list[NodeOrder]:
    """Number all calls by key; where keys are equal, producers first."""
    joined = np.concatenate([keys[index] for index in order])
    sequence = np.empty(len(joined), np.int64)
    # The keys of each node rise, so that a stable (merging) sort of these few runs is nearly linear.
    sequence[np.argsort(joined, kind="stable")] = np.arange(len(joined))
    ends = np.cumsum([len(keys[index]) for index in order])
    by_node = dict(zip(order, np.split(sequence, ends[:-1]), strict=True))
    return [NodeOrder(position, by_node[index]) for index, position in enumerate(positions)]
