"""Why does a node have the rows, groups, waves, idle replicas and waits that it has?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

from flowsched.graph import Graph, Node
from flowsched.graph.topology import topological_order
from flowsched.inspect.arithmetic import count
from flowsched.inspect.summary import NodeSummary
from flowsched.plan import Plan

Served = Mapping[str, Sequence[int]]
"""For each node with replicas of its own, the indices of the nodes that these serve, producers first."""


def reasons_of(plan: Plan, summary: NodeSummary, served: Served) -> list[str]:
    """Return one sentence for each thing that shapes a node beside its replicas and batch size."""
    node = plan.graph[summary.node]
    return [
        *_why_rows(plan, node),
        *_why_shared_rows(plan, node),
        *_why_whole_groups(summary, node),
        *_why_waves(plan, summary),
        *_why_idle(summary),
        *_why_shared_replicas(plan.graph, node, served),
        *_why_later(plan, node),
    ]


def served_by_owners(graph: Graph) -> Served:
    """Return which nodes the replicas of each node serve."""
    served: dict[str, list[int]] = {}
    for index in topological_order(graph):
        served.setdefault(graph.owner(graph.nodes[index].name).name, []).append(index)
    return served


def _why_rows(plan: Plan, node: Node) -> Iterator[str]:
    rows = plan.rows[node.name].read
    if rows == 1:
        return
    makers = []
    while (name := _widest_input(plan, node)) in plan.graph:
        node = plan.graph[name]
        makers += [f"{name} expands each row into {node.expand:,}"] * (node.expand > 1)
        makers += [f"{name} collapses {node.collapse:,} rows into 1"] * (node.collapse > 1)
    yield f"{_say_per_sample(rows)}: {', '.join(reversed(makers))}"


def _widest_input(plan: Plan, node: Node) -> str:
    """Return the input that has as many rows as the node reads."""
    return node.inputs[plan.rows[node.name].times.index(1)]


def _say_per_sample(rows: Fraction) -> str:
    if rows.denominator == 1:
        return f"{rows.numerator:,} rows for each sample"
    return f"{count(rows.numerator, 'row')} for every {rows.denominator:,} samples"


def _why_shared_rows(plan: Plan, node: Node) -> Iterator[str]:
    for name, times in zip(node.inputs, plan.rows[node.name].times, strict=True):
        if times > 1:
            yield f"each row of {name} is shared by {times:,} consecutive rows"


def _why_whole_groups(summary: NodeSummary, node: Node) -> Iterator[str]:
    if node.collapse > 1:
        yield f"collapse {node.collapse}: every {node.collapse:,} rows stay in one call and become 1"
    if node.group > 1:
        yield f"group {node.group}: every {node.group:,} rows stay in one call"
    if node.expand > 1:
        yield f"expand {node.expand}: each row becomes {node.expand:,}, {summary.rows_made:,} in all"


def _why_waves(plan: Plan, summary: NodeSummary) -> Iterator[str]:
    calls = plan[summary.node].numbers
    waves = plan.table.wave[calls.start : calls.stop]
    if summary.waves > 1 and summary.used > 1 and bool((np.diff(waves) >= 0).all()):
        last = calls.start + int(np.searchsorted(waves, 0, side="right")) - 1
        yield f"dealt wave by wave: the first calls of all replicas read [0:{plan.table.stop[last]}], and so on"


def _why_idle(summary: NodeSummary) -> Iterator[str]:
    if summary.idle and 0 < summary.rows == summary.used * summary.unit:
        least = count(summary.used, "row" if summary.unit == 1 else "group")
        yield f"{summary.idle:,} of {summary.replicas:,} replicas are idle: {least} cannot be divided further"


def _why_shared_replicas(graph: Graph, node: Node, served: Served) -> Iterator[str]:
    names = [graph.nodes[index].name for index in served[graph.owner(node.name).name]]
    before = names[: names.index(node.name)]
    if node.replicas_of is None:
        shared = [name for name in names if name != node.name]
        if shared:
            yield f"its replicas serve {', '.join(shared)} too, one node after the other"
    else:
        after = f", after those of {', '.join(before)}" if before else ""
        yield f"replicas_of {node.replicas_of}: its calls stand in the queues of those replicas{after}"


def _why_later(plan: Plan, node: Node) -> Iterator[str]:
    for name in node.after:
        yield f"after {name}: its first call waits until {count(len(plan[name]), 'call')} of {name} have ended"
