"""How is a node split, what feeds it, who reads it, and why is it so?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flowsched.inspect.arithmetic import count, say_extent, say_split
from flowsched.inspect.explanation import Explanation
from flowsched.inspect.hints import MOST_PRINTED, Hints
from flowsched.inspect.listing import WIDTH, list_calls, pick
from flowsched.inspect.reasons import reasons_of, served_by_owners
from flowsched.inspect.summary import NodeSummary, summarise_node
from flowsched.inspect.text import wrap
from flowsched.plan import Plan

_LABEL_WIDTH = 11


def explain_node(plan: Plan, index: int, limit: int | None, hints: Hints) -> Explanation:
    """Explain one node; ``limit`` bounds the calls that are listed."""
    summary = summarise_node(plan, index)
    calls = plan[summary.node]
    split, reasons = say_split(summary), reasons_of(plan, summary, served_by_owners(plan.graph))
    more = hints.list_all(calls.name) if len(calls) <= MOST_PRINTED else ""
    blocks = [
        ("split", wrap("", split, WIDTH - _LABEL_WIDTH)),
        ("why", [line for reason in reasons for line in wrap("", reason, WIDTH - _LABEL_WIDTH)]),
        ("reads", _say_inputs(plan, summary)),
        ("read by", wrap("", _say_readers(plan, summary.node), WIDTH - _LABEL_WIDTH)),
        ("calls", list_calls(plan, calls.numbers, limit, WIDTH - _LABEL_WIDTH, more, "")),
    ]
    picked = pick(len(calls), limit)
    facts = {
        "kind": "node",
        **summary.to_dict(),
        "split": split,
        "reasons": reasons,
        "read_by": list(plan.graph.readers(summary.node)),
        "output": summary.node in plan.graph.outputs,
        "listed": [call_facts(plan, calls.numbers[at]) for at in picked.places],
        "left_out": picked.left_out,
    }
    title = f"node {summary.node} of {plan.graph.name} with {count(plan.samples, 'sample')}"
    return Explanation((title, *labelled(blocks)), facts)


def labelled(blocks: Iterable[tuple[str, list[str]]]) -> list[str]:
    """Return blocks of lines with the label of each at the left of its first line."""
    lines = []
    for label, block in blocks:
        for i, line in enumerate(block):
            lines.append(f"  {(label if i == 0 else '').ljust(_LABEL_WIDTH - 2)}{line}")
    return lines


def say_neighbours(plan: Plan, summary: NodeSummary) -> str:
    """Return what a node reads and who reads it."""
    return f"reads {', '.join(summary.inputs)}; read by {_say_readers(plan, summary.node)}"


def call_facts(plan: Plan, number: int) -> dict[str, Any]:
    """Return one call as plain data; its fragments are counted, not listed."""
    table = plan.table
    index = int(table.node[number])
    width = len(plan.graph.nodes[index].inputs)
    first = int(plan.feed_offsets[index] + (number - plan.call_offsets[index]) * width)
    name = plan.graph.nodes[index].name
    return {
        "call": f"{name}.{table.replica[number]}.{table.position[number]}",
        "node": name,
        "replica": int(table.replica[number]),
        "position": int(table.position[number]),
        "reads": [int(table.start[number]), int(table.stop[number])],
        "makes": list(plan.made_rows(number)),
        "fragments": int(table.feed[first + width] - table.feed[first]),
    }


def _say_readers(plan: Plan, node: str) -> str:
    readers = ", ".join(plan.graph.readers(node)) or "no node"
    return f"{readers}; an output" if node in plan.graph.outputs else readers


def _say_inputs(plan: Plan, summary: NodeSummary) -> list[str]:
    said = []
    times_of = plan.rows[summary.node].times
    for name, times, extent in zip(summary.inputs, times_of, summary.fragments_per_call, strict=True):
        calls = "the source" if name in plan.graph.sources else count(len(plan[name]), "call")
        rows = count(summary.rows // times, "row")
        said.append(f"{name}: {rows} of {calls}, {_say_fragments(*extent)} a call")
    return said


def _say_fragments(fewest: int, most: int) -> str:
    return f"{say_extent(fewest, most)} fragment{'' if fewest == most == 1 else 's'}"
