"""Where is a sample at one node, along one edge, or on one replica?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from flowsched.inspect.arithmetic import count
from flowsched.inspect.explain_edge import fragment_facts, fragment_table, fragments_of_edge, say_rows
from flowsched.inspect.explain_node import call_facts
from flowsched.inspect.explain_sample import passage_facts, say_sample
from flowsched.inspect.explanation import Explanation
from flowsched.inspect.lineage import Passage, follow_sample, rows_carrying
from flowsched.inspect.listing import WIDTH, list_calls, pick
from flowsched.plan import Plan


def explain_sample_at_node(plan: Plan, sample: int, node: int, limit: int | None) -> Explanation:
    """Explain what carries a sample into one node; ``limit`` bounds the fragments that are listed."""
    passages = follow_sample(plan, sample)
    passage = passages[plan.graph.nodes[node].name]
    places = range(len(plan.graph.nodes[node].inputs))
    carrying = [fact for place in places for fact in _carrying(plan, passages, sample, node, place)]
    rows = f"read as rows {say_rows(passage.reads)}, made into rows {say_rows(passage.makes)}"
    title = f"{say_sample(plan, sample)} at node {passage.node}: {rows}"
    facts = {"kind": "sample", "sample": sample, "passages": [passage_facts(plan, passage, limit)]}
    return _with_fragments(title, facts, carrying, limit)


def explain_sample_on_edge(
    plan: Plan, sample: int, consumer: int, place: int, limit: int | None
) -> Explanation:
    """Explain which fragments of an edge carry a sample; ``limit`` bounds those that are listed."""
    passages = follow_sample(plan, sample)
    node = plan.graph.nodes[consumer]
    producer = node.inputs[place]
    rows = rows_carrying(passages, producer, sample)
    title = (
        f"{say_sample(plan, sample)} on edge {producer} -> {node.name}: rows {say_rows(rows)} of {producer}"
    )
    facts = {
        "kind": "sample",
        "sample": sample,
        "producer": producer,
        "consumer": node.name,
        "rows": list(rows),
    }
    return _with_fragments(title, facts, _carrying(plan, passages, sample, consumer, place), limit)


def explain_sample_on_replica(
    plan: Plan, sample: int, owner: str, replica: int, limit: int | None
) -> Explanation:
    """Explain which calls of a replica read a sample; ``limit`` bounds those that are listed."""
    own: list[int] = []
    others: set[int] = set()
    for passage in follow_sample(plan, sample).values():
        if plan.graph.owner(passage.node).name == owner:
            serving = plan.table.replica[passage.calls.start : passage.calls.stop]
            own += (np.flatnonzero(serving == replica) + passage.calls.start).tolist()
            others |= {int(other) for other in serving if other != replica}
    read = f"read by {count(len(own), 'call')}" if own else "not read there"
    lines = [f"{say_sample(plan, sample)} on replica {owner}.{replica}: {read}"]
    lines += list_calls(plan, own, limit, WIDTH)
    if others:
        lines.append(f"  {'also ' if own else ''}read by {_say_replicas(owner, sorted(others))}")
    picked = pick(len(own), limit)
    facts = {
        "kind": "sample",
        "sample": sample,
        "replica": f"{owner}.{replica}",
        "listed": [call_facts(plan, own[at]) for at in picked.places],
        "left_out": picked.left_out,
        "other_replicas": [f"{owner}.{other}" for other in sorted(others)],
    }
    return Explanation(tuple(lines), facts)


def _carrying(
    plan: Plan, passages: Mapping[str, Passage], sample: int, consumer: int, place: int
) -> list[dict[str, Any]]:
    """Return the fragments of an edge that carry the sample, as plain data."""
    node = plan.graph.nodes[consumer]
    start, stop = rows_carrying(passages, node.inputs[place], sample)
    edge = fragments_of_edge(plan, consumer, place)
    opens, closes = (
        column[edge.fragment] for column in (plan.table.fragment_start, plan.table.fragment_stop)
    )
    found = np.flatnonzero((opens < stop) & (closes > start)).tolist()
    return [fragment_facts(plan, edge, at, plan.rows[node.name].times[place]) for at in found]


def _with_fragments(
    title: str, facts: Mapping[str, Any], carrying: list[dict[str, Any]], limit: int | None
) -> Explanation:
    picked = pick(len(carrying), limit)
    listed = [carrying[at] for at in picked.places]
    table = fragment_table(listed, picked.left_out, len(picked.first))
    return Explanation((title, *table), {**facts, "listed": listed, "left_out": picked.left_out})


def _say_replicas(owner: str, replicas: list[int]) -> str:
    picked = pick(len(replicas), 4)
    said = [f"{owner}.{replicas[at]}" for at in picked.places]
    if picked.left_out:
        said.insert(len(picked.first), f"{picked.left_out:,} more")
    return ", ".join(said)
