"""How are the calls of a producer divided among the calls of a consumer?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flowsched.inspect.align import align
from flowsched.inspect.arithmetic import count, say_extent
from flowsched.inspect.explanation import Explanation
from flowsched.inspect.listing import pick
from flowsched.plan import Plan

_Int64 = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class EdgeFragments:
    """The fragments of one edge, in the order of the consumer's rows.

    Attributes:
        fragment: (fragments,) place in the plan's table.
        reader: (fragments,) number of the call that reads it.
        per_reader: (consumer's calls,) how many fragments each of them reads.
        per_maker: (producer's calls,) into how many fragments each of them is divided; one place for a source.
    """

    fragment: _Int64
    reader: _Int64
    per_reader: _Int64
    per_maker: _Int64


def fragments_of_edge(plan: Plan, consumer: int, place: int) -> EdgeFragments:
    """Find the fragments that a node reads from one of its inputs.

    Args:
        plan: the plan.
        consumer: index of the node that reads.
        place: which of its inputs.
    """
    node, table = plan.graph.nodes[consumer], plan.table
    first, last = (int(at) for at in plan.call_offsets[consumer : consumer + 2])
    feeds = plan.feed_offsets[consumer] + np.arange(last - first) * len(node.inputs) + place
    counts = table.feed[feeds + 1] - table.feed[feeds]
    ends = np.cumsum(counts)
    within = np.arange(int(counts.sum())) - np.repeat(ends - counts, counts)
    fragment = np.repeat(table.feed[feeds], counts) + within
    name = node.inputs[place]
    if name in plan.graph.sources:
        per_maker = np.array([len(fragment)], np.int64)
    else:
        made = plan[name].numbers
        per_maker = np.bincount(table.producer[fragment] - made.start, minlength=len(made))
    return EdgeFragments(fragment, np.repeat(np.arange(first, last), counts), counts, per_maker)


def explain_edge(plan: Plan, consumer: int, place: int, limit: int | None) -> Explanation:
    """Explain how one input of a node reaches its calls; ``limit`` bounds the fragments that are listed."""
    node = plan.graph.nodes[consumer]
    producer, times = node.inputs[place], plan.rows[node.name].times[place]
    edge = fragments_of_edge(plan, consumer, place)
    picked = pick(len(edge.fragment), limit)
    listed = [fragment_facts(plan, edge, at, times) for at in picked.places]
    cut, merged = int((edge.per_maker > 1).sum()), int((edge.per_reader > 1).sum())
    rows = int(plan.rows[node.name].read * plan.samples) // times
    lines = [
        _title(plan, producer, node.name, edge, rows),
        *_say_division(plan, producer, node.name, edge, cut, merged),
        *([f"  each row is shared by {times:,} consecutive rows of {node.name}"] if times > 1 else []),
        *fragment_table(listed, picked.left_out, len(picked.first)),
    ]
    facts = {
        "kind": "edge",
        "producer": producer,
        "consumer": node.name,
        "rows": rows,
        "times": times,
        "fragments": len(edge.fragment),
        "producer_calls": None if producer in plan.graph.sources else len(edge.per_maker),
        "producer_calls_cut": None if producer in plan.graph.sources else cut,
        "consumer_calls": len(edge.per_reader),
        "consumer_calls_merging": merged,
        "listed": listed,
        "left_out": picked.left_out,
    }
    return Explanation(tuple(lines), facts)


def fragment_facts(plan: Plan, edge: EdgeFragments, at: int, times: int) -> dict[str, Any]:
    """Return one fragment of an edge as plain data."""
    fragment = plan.fragment(int(edge.fragment[at]))
    reader, table = int(edge.reader[at]), plan.table
    name = plan.graph.nodes[table.node[reader]].name
    start = max(fragment.start * times, int(table.start[reader]))
    stop = min(fragment.stop * times, int(table.stop[reader]))
    return {
        "rows": [fragment.start, fragment.stop],
        "made_by": fragment.producer,
        "read_by": f"{name}.{table.replica[reader]}.{table.position[reader]}",
        "as_rows": [start, stop],
    }


def fragment_table(listed: list[dict[str, Any]], left_out: int = 0, before: int = 0) -> list[str]:
    """Return fragments as aligned lines; ``left_out`` are passed over after the first ``before``."""
    if not listed:
        return []
    rows = [("rows", "made by", "read by", "as rows")]
    rows += [
        (say_rows(fact["rows"]), fact["made_by"], fact["read_by"], say_rows(fact["as_rows"]))
        for fact in listed
    ]
    lines = align(rows)
    if left_out:
        lines.insert(before + 1, f"  ... {left_out:,} more")
    return lines


def say_rows(rows: Sequence[int]) -> str:
    """Return a half-open range of rows as call notation writes it."""
    return f"[{rows[0]}:{rows[1]}]"


def _title(plan: Plan, producer: str, consumer: str, edge: EdgeFragments, rows: int) -> str:
    made = "the source" if producer in plan.graph.sources else count(len(edge.per_maker), "call")
    read = count(len(edge.per_reader), "call")
    fragments = count(len(edge.fragment), "fragment")
    return f"edge {producer} -> {consumer}: {count(rows, 'row')} of {made} reach {read} in {fragments}"


def _say_division(
    plan: Plan, producer: str, consumer: str, edge: EdgeFragments, cut: int, merged: int
) -> list[str]:
    if not len(edge.fragment):
        return []
    lines = []
    if producer not in plan.graph.sources:
        parts = edge.per_maker[edge.per_maker > 1]
        into = f", into {say_extent(int(parts.min()), int(parts.max()))} fragments each" if cut else ""
        lines.append(f"  {cut:,} of {count(len(edge.per_maker), 'call')} of {producer} are cut{into}")
    parts = edge.per_reader[edge.per_reader > 1]
    of = f", {say_extent(int(parts.min()), int(parts.max()))} each" if merged else ""
    lines.append(
        f"  {merged:,} of {count(len(edge.per_reader), 'call')} of {consumer} read several fragments{of}"
    )
    return lines
