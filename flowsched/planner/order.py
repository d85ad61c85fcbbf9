"""Pass 4, order: each replica's queue, and one order of all calls that no queue contradicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from flowsched.graph import Graph
from flowsched.graph.rows import NodeRows
from flowsched.graph.topology import topological_order
from flowsched.plan.table import Int32, Int64
from flowsched.planner.cut import Calls
from flowsched.planner.route import Feeds, blocks


@dataclass(frozen=True, eq=False)
class Order:
    """The order of all calls.

    Attributes:
        position: (calls,) place in the replica's queue, over all nodes that the replica serves.
        sequence: (calls,) place in the order of all calls.
    """

    position: Int32
    sequence: Int64


def order_calls(graph: Graph, rows: Mapping[str, NodeRows], calls: Calls, feeds: Feeds) -> Order:
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
    """
    order = topological_order(graph)
    needed, position = np.empty_like(calls.stop), calls.wave.copy()
    queued: dict[str, tuple[Int32, Int64]] = {}
    for index in order:
        own, owner = calls.of(index), graph.owner(graph.nodes[index].name)
        _find_needed(graph, index, rows, calls, feeds, needed)
        key, replica = needed[own], calls.replica[own]
        if owner.name in queued:
            length, last_key = queued[owner.name]
            position[own] += length[replica]
            np.maximum(key, last_key[replica], out=key)
            np.maximum.accumulate(key, out=key)
        else:
            length, last_key = np.zeros(owner.replicas, np.int32), np.zeros(owner.replicas, np.int64)
        queued[owner.name] = _after_calls(replica, key, length, last_key)
    return Order(position, _number(order, calls, needed))


def _find_needed(
    graph: Graph, index: int, rows: Mapping[str, NodeRows], calls: Calls, feeds: Feeds, needed: Int64
) -> None:
    """Write how many samples must have been read before each call of a node has all that it waits for."""
    node = graph.nodes[index]
    siblings, merged, width = rows[node.name].siblings, rows[node.name].merged, len(node.inputs)
    after = [needed[calls.of(graph.index(name))].max(initial=0) for name in node.after]
    for block in blocks(calls.of(index)):
        own = needed[block]
        own[:] = -(-calls.stop[block] // siblings) * merged
        feed = feeds.offsets[index] + (block.start - calls.offsets[index]) * width
        ending = feeds.feed[feed + 1 : feed + 1 + len(own) * width].reshape(-1, width)
        for i, name in enumerate(node.inputs):
            if name not in graph.sources:
                np.maximum(own, needed[feeds.producer[ending[:, i] - 1]], out=own)
        np.maximum(own, max(after, default=0), out=own)


def _after_calls(replica: Int32, key: Int64, length: Int32, last_key: Int64) -> tuple[Int32, Int64]:
    """Return the queues' lengths and last keys after a node's calls."""
    counts = np.bincount(replica, minlength=len(length)).astype(np.int32)
    last = last_key.copy()
    last[replica] = key  # keys rise, and the last assignment stays
    return length + counts, last


def _number(order: Sequence[int], calls: Calls, needed: Int64) -> Int64:
    """Number all calls by the samples they need; where these are equal, producers first. Overwrites ``needed``."""
    joined = np.concatenate([needed[calls.of(index)] for index in order])
    # What the calls of a node need rises, so that a stable (merging) sort of these few runs is nearly linear.
    sorted_ = np.argsort(joined, kind="stable")
    place = joined  # the memory is used again, as is that of needed below
    for block in blocks(slice(0, len(place))):
        place[sorted_[block]] = np.arange(block.start, block.stop)
    sequence, start = needed, 0
    for index in order:
        own = calls.of(index)
        stop = start + own.stop - own.start
        sequence[own] = place[start:stop]
        start = stop
    return sequence
