"""Where does a sample go: which calls read it, and which rows does it become?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from flowsched.graph.topology import topological_order
from flowsched.inspect.align import align
from flowsched.inspect.arithmetic import count
from flowsched.inspect.explain_edge import fragment_facts, fragment_table, fragments_of_edge, say_rows
from flowsched.inspect.explain_node import call_facts
from flowsched.inspect.explanation import Explanation
from flowsched.inspect.listing import WIDTH, list_calls, pick, say_inputs, say_made
from flowsched.plan import Plan

_MOST_CALLS = 3


@dataclass(frozen=True)
class Passage:
    """A sample's passage through one node.

    Attributes:
        index: index of the node in ``plan.graph.nodes``.
        reads: half-open range of the rows that carry the sample into the node.
        makes: half-open range of the rows that the node makes of them.
        calls: numbers of the calls that read them.
    """

    index: int
    reads: tuple[int, int]
    makes: tuple[int, int]
    calls: range


def follow_sample(plan: Plan, sample: int) -> dict[str, Passage]:
    """Return the passage of a sample through each node, producers first.

    Where several samples become one row, the sample is followed into all that is made of that row.
    """
    made = dict.fromkeys(plan.graph.sources, (sample, sample + 1))
    passages: dict[str, Passage] = {}
    for index in topological_order(plan.graph):
        node = plan.graph.nodes[index]
        times_of = plan.rows[node.name].times
        ranges = [
            (made[name][0] * times, made[name][1] * times)
            for name, times in zip(node.inputs, times_of, strict=True)
        ]
        reads = min(start for start, _ in ranges), max(stop for _, stop in ranges)
        makes = reads[0] // node.collapse * node.expand, -(-reads[1] // node.collapse) * node.expand
        made[node.name] = makes
        passages[node.name] = Passage(index, reads, makes, _calls_reading(plan, index, *reads))
    return passages


def explain_sample(
    plan: Plan,
    sample: int,
    limit: int | None,
    *,
    node: int | None = None,
    edge: tuple[int, int] | None = None,
    replica: tuple[str, int] | None = None,
) -> Explanation:
    """Explain where a sample goes: everywhere, or at one node, along one edge, or on one replica."""
    passages = follow_sample(plan, sample)
    if edge is not None:
        return _along_edge(plan, sample, passages, edge, limit)
    if replica is not None:
        return _on_replica(plan, sample, passages.values(), replica, limit)
    if node is not None:
        return _at_node(plan, sample, passages[plan.graph.nodes[node].name], limit)
    rows = [("node", "reads", "replica", "call", "makes")]
    rows += [
        (
            name,
            say_rows([*passage.reads]),
            _say_replicas(plan, passage),
            _say_calls(plan, passage),
            say_rows([*passage.makes]),
        )
        for name, passage in passages.items()
    ]
    facts = {
        "kind": "sample",
        "sample": sample,
        "passages": [_passage_facts(plan, passage, limit) for passage in passages.values()],
    }
    return Explanation((f"{_say_sample(plan, sample)} through {plan.graph.name}", *align(rows)), facts)


def _at_node(plan: Plan, sample: int, passage: Passage, limit: int | None) -> Explanation:
    name = plan.graph.nodes[passage.index].name
    rows = f"read as rows {say_rows([*passage.reads])}, made into rows {say_rows([*passage.makes])}"
    lines = [f"{_say_sample(plan, sample)} at node {name}: {rows}"]
    picked = pick(len(passage.calls), limit)
    for at in picked.places:
        if at in picked.last:
            lines.append(f"  ... {picked.left_out:,} more")
        lines.append(f"  {say_made(plan, passage.calls[at])}")
        lines += [f"    <- {read}" for read in say_inputs(plan, passage.calls[at])]
    facts = {"kind": "sample", "sample": sample, "passages": [_passage_facts(plan, passage, limit)]}
    return Explanation(tuple(lines), facts)


def _along_edge(
    plan: Plan, sample: int, passages: dict[str, Passage], ends: tuple[int, int], limit: int | None
) -> Explanation:
    consumer, place = ends
    node = plan.graph.nodes[consumer]
    producer, times = node.inputs[place], plan.rows[node.name].times[place]
    start, stop = passages[producer].makes if producer in passages else (sample, sample + 1)
    edge = fragments_of_edge(plan, consumer, place)
    carries = (plan.table.fragment_start[edge.fragment] < stop) & (
        plan.table.fragment_stop[edge.fragment] > start
    )
    carrying = np.flatnonzero(carries)
    picked = pick(len(carrying), limit)
    listed = [fragment_facts(plan, edge, int(carrying[at]), times) for at in picked.places]
    which = f"rows {say_rows([start, stop])} of {producer}"
    title = f"{_say_sample(plan, sample)} on edge {producer} -> {node.name}: {which}"
    facts = {
        "kind": "sample",
        "sample": sample,
        "producer": producer,
        "consumer": node.name,
        "rows": [start, stop],
        "listed": listed,
        "left_out": picked.left_out,
    }
    return Explanation((title, *fragment_table(listed, picked.left_out, len(picked.first))), facts)


def _on_replica(
    plan: Plan, sample: int, passages: Iterable[Passage], replica: tuple[str, int], limit: int | None
) -> Explanation:
    owner, index = replica
    own: list[int] = []
    others: set[int] = set()
    for passage in passages:
        if plan.graph.owner(_name(plan, passage)).name == owner:
            serving = plan.table.replica[passage.calls.start : passage.calls.stop]
            own += (np.flatnonzero(serving == index) + passage.calls.start).tolist()
            others |= {int(other) for other in np.unique(serving) if other != index}
    elsewhere = [f"{owner}.{other}" for other in sorted(others)]
    reads = f"read by {count(len(own), 'call')}" if own else "not read there"
    lines = [f"{_say_sample(plan, sample)} on replica {owner}.{index}: {reads}"]
    lines += list_calls(plan, own, limit, WIDTH)
    if elsewhere:
        lines.append(f"  {'also ' if own else ''}read by {', '.join(elsewhere)}")
    facts = {
        "kind": "sample",
        "sample": sample,
        "replica": f"{owner}.{index}",
        "calls": [call_facts(plan, number) for number in own],
        "other_replicas": elsewhere,
    }
    return Explanation(tuple(lines), facts)


def _calls_reading(plan: Plan, index: int, start: int, stop: int) -> range:
    first, last = (int(at) for at in plan.call_offsets[index : index + 2])
    own = slice(first, last)
    opening = first + int(np.searchsorted(plan.table.stop[own], start, side="right"))
    closing = first + int(np.searchsorted(plan.table.start[own], stop, side="left"))
    return range(opening, closing)


def _say_calls(plan: Plan, passage: Passage) -> str:
    picked = pick(len(passage.calls), _MOST_CALLS)
    said = [say_made(plan, passage.calls[at]) for at in picked.places]
    if picked.left_out:
        said.insert(len(picked.first), f"({picked.left_out:,} more)")
    return " + ".join(said)


def _say_replicas(plan: Plan, passage: Passage) -> str:
    replicas = np.unique(plan.table.replica[passage.calls.start : passage.calls.stop]).tolist()
    picked = pick(len(replicas), _MOST_CALLS)
    said = [str(replicas[at]) for at in picked.places]
    if picked.left_out:
        said.insert(len(picked.first), "...")
    return ", ".join(said)


def _passage_facts(plan: Plan, passage: Passage, limit: int | None) -> dict[str, Any]:
    picked = pick(len(passage.calls), limit)
    return {
        "node": _name(plan, passage),
        "reads": list(passage.reads),
        "makes": list(passage.makes),
        "calls": [call_facts(plan, passage.calls[at]) for at in picked.places],
        "left_out": picked.left_out,
    }


def _name(plan: Plan, passage: Passage) -> str:
    return plan.graph.nodes[passage.index].name


def _say_sample(plan: Plan, sample: int) -> str:
    return f"sample {sample} (of 0-{plan.samples - 1})"
