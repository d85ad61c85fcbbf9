"""How a plan uses each node's replicas, in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flowsched.plan import Plan

Counts = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class NodeSummary:
    """The numbers of one node of a plan.

    Attributes:
        node: name of the node.
        inputs: names of the sources and nodes that it reads.
        owner: name of the node whose replicas serve it; its own name unless it says ``replicas_of``.
        replicas: how many replicas serve it.
        used: how many of them have at least one call of this node.
        calls: number of calls.
        waves: the most calls that one replica has of this node.
        rows: rows that all calls read together.
        rows_made: rows that all calls make together.
        batch_size: the most rows that one call may read; None for no limit.
        unit: rows that cannot be parted (its group or collapse).
        loads: (rows, replicas with so many), largest first, idle replicas left out.
        call_counts: (calls, replicas with so many), largest first, idle replicas left out.
        call_sizes: (rows, calls that read so many), largest first.
        fragments: fragments of all calls and inputs together.
        fragments_per_call: for each input, the fewest and the most fragments of one call.
    """

    node: str
    inputs: tuple[str, ...]
    owner: str
    replicas: int
    used: int
    calls: int
    waves: int
    rows: int
    rows_made: int
    batch_size: int | None
    unit: int
    loads: Counts
    call_counts: Counts
    call_sizes: Counts
    fragments: int
    fragments_per_call: tuple[tuple[int, int], ...]

    @property
    def idle(self) -> int:
        """Replicas without a call of this node."""
        return self.replicas - self.used

    @property
    def largest_call(self) -> int:
        """Rows of the largest call; 0 where there is none."""
        return self.call_sizes[0][0] if self.call_sizes else 0

    @property
    def smallest_call(self) -> int:
        """Rows of the smallest call; 0 where there is none."""
        return self.call_sizes[-1][0] if self.call_sizes else 0

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain data for JSON."""
        return {
            "node": self.node,
            "inputs": list(self.inputs),
            "owner": self.owner,
            "replicas": self.replicas,
            "used": self.used,
            "idle": self.idle,
            "calls": self.calls,
            "waves": self.waves,
            "rows": self.rows,
            "rows_made": self.rows_made,
            "batch_size": self.batch_size,
            "unit": self.unit,
            "largest_call": self.largest_call,
            "smallest_call": self.smallest_call,
            "loads": [{"rows": rows, "replicas": replicas} for rows, replicas in self.loads],
            "call_counts": [{"calls": calls, "replicas": replicas} for calls, replicas in self.call_counts],
            "call_sizes": [{"rows": rows, "calls": calls} for rows, calls in self.call_sizes],
            "fragments": self.fragments,
            "fragments_per_call": [
                {"input": name, "fewest": fewest, "most": most}
                for name, (fewest, most) in zip(self.inputs, self.fragments_per_call, strict=True)
            ],
        }


def summarise(plan: Plan) -> tuple[NodeSummary, ...]:
    """Return the numbers of every node, in the order in which the graph declares them.

    >>> import flowsched as fs
    >>> node = fs.Node("reward", inputs=["prompts"], replicas=3, batch_size=4)
    >>> (reward,) = summarise(fs.compile(fs.Graph("g", ["prompts"], [node]), samples=16))
    >>> reward.loads, reward.call_sizes
    (((6, 1), (5, 2)), ((3, 4), (2, 2)))
    """
    return tuple(summarise_node(plan, index) for index in range(len(plan.graph.nodes)))


def summarise_node(plan: Plan, index: int) -> NodeSummary:
    """Return the numbers of the node with this index in ``plan.graph.nodes``."""
    node, table = plan.graph.nodes[index], plan.table
    owner = plan.graph.owner(node.name)
    own = slice(*plan.call_offsets[index : index + 2])
    sizes = table.stop[own] - table.start[own]
    used, replica = np.unique(table.replica[own], return_inverse=True)
    calls_of = np.bincount(replica, minlength=len(used))
    rows_of = np.zeros(len(used), np.int64)
    np.add.at(rows_of, replica, sizes)
    rows = plan.rows[node.name]
    per_call = fragments_of_calls(plan, index)
    return NodeSummary(
        node=node.name,
        inputs=node.inputs,
        owner=owner.name,
        replicas=owner.replicas,
        used=len(used),
        calls=len(sizes),
        waves=int(calls_of.max(initial=0)),
        rows=int(rows.read * plan.samples),
        rows_made=int(rows.made * plan.samples),
        batch_size=node.batch_size,
        unit=node.unit,
        loads=_count(rows_of),
        call_counts=_count(calls_of),
        call_sizes=_count(sizes),
        fragments=int(per_call.sum()),
        fragments_per_call=tuple(_extent(column) for column in per_call.T),
    )


def fragments_of_calls(plan: Plan, index: int) -> NDArray[np.int64]:
    """Return (calls, inputs) the number of fragments of each call and input of a node."""
    first, last = plan.feed_offsets[index : index + 2]
    counts: NDArray[np.int64] = np.diff(plan.table.feed[first : last + 1])
    return counts.reshape(-1, len(plan.graph.nodes[index].inputs))


def count_idle(plan: Plan) -> int:
    """Return how many replicas have no call of any node that they serve."""
    busy: dict[str, list[NDArray[np.int32]]] = {owner.name: [] for owner in plan.graph.owners()}
    for index, node in enumerate(plan.graph.nodes):
        own = slice(*plan.call_offsets[index : index + 2])
        busy[plan.graph.owner(node.name).name].append(np.unique(plan.table.replica[own]))
    return sum(
        plan.graph[name].replicas - len(np.unique(np.concatenate(used))) for name, used in busy.items()
    )


def _count(values: NDArray[np.int64]) -> Counts:
    distinct, counts = np.unique(values, return_counts=True)
    return tuple(zip(distinct[::-1].tolist(), counts[::-1].tolist(), strict=True))


def _extent(values: NDArray[np.int64]) -> tuple[int, int]:
    return (int(values.min()), int(values.max())) if len(values) else (0, 0)
