"""What notebooks show: static tables, without scripts, in the colours of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from html import escape

from flowsched.graph import Graph, Node
from flowsched.inspect.arithmetic import say_split
from flowsched.inspect.listing import pick, say_inputs, say_made
from flowsched.inspect.summary import summarise, summarise_node
from flowsched.inspect.text import HEADER, NUMBER_COLUMNS, heading, routing_blocks, summary_cells
from flowsched.plan import NodePlan, Plan

_RULE = "1px solid rgba(128, 128, 128, 0.4)"  # half-way grey shows on white as on black
_MOST_CALLS = 32


def plan_html(plan: Plan) -> str:
    """Return a plan as HTML: its heading, the table of its nodes, and below which calls read which rows."""
    summaries = summarise(plan)
    below = "\n\n".join("\n".join(block) for block in routing_blocks(plan, summaries))
    table = _table(HEADER, [summary_cells(summary) for summary in summaries], NUMBER_COLUMNS)
    shown = f'<pre style="background: transparent; color: inherit">{escape(below)}</pre>' if below else ""
    return f"<div><p>{escape(heading(plan))}</p>{table}{shown}</div>"


def calls_html(calls: NodePlan) -> str:
    """Return the calls of one node as HTML: how its rows are split, and a table of the calls, the first of many."""
    plan, node = calls.plan, calls.plan.graph.nodes[calls.index]
    picked = pick(len(calls), _MOST_CALLS)
    rows = [
        [say_made(plan, number), *say_inputs(plan, number)]
        for number in (calls.numbers[at] for at in picked.places)
    ]
    if picked.left_out:
        rows.insert(len(picked.first), [f"... {picked.left_out:,} more", *("" for _ in node.inputs)])
    title = f"{node.name} of {plan.graph.name}: {say_split(summarise_node(plan, calls.index))}"
    table = _table(["call", *node.inputs], rows, [False] * (1 + len(node.inputs)))
    return f"<div><p>{escape(title)}</p>{table}</div>"


def graph_html(graph: Graph) -> str:
    """Return a graph as HTML, one row a node."""
    columns = [
        item for item in fields(Node) if any(getattr(node, item.name) != item.default for node in graph)
    ]
    rows = [[_cell(getattr(node, item.name)) for item in columns] for node in graph]
    title = f"{graph.name}: sources {', '.join(graph.sources)}; outputs {', '.join(graph.outputs)}"
    table = _table([item.name for item in columns], rows, [item.type == "Count" for item in columns])
    return f"<div><p>{escape(title)}</p>{table}</div>"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[bool]) -> str:
    sides = ["right" if number else "left" for number in numbers]
    head = _row("th", header, sides)
    body = "".join(_row("td", row, sides) for row in rows)
    style = "border-collapse: collapse; color: inherit; background: transparent"
    return f'<table style="{style}"><thead>{head}</thead><tbody>{body}</tbody></table>'


def _row(tag: str, cells: Sequence[str], sides: Sequence[str]) -> str:
    style = f"padding: 0.2em 0.8em; border-bottom: {_RULE}; text-align: "
    return (
        "<tr>"
        + "".join(
            f'<{tag} style="{style}{side}">{escape(cell)}</{tag}>'
            for cell, side in zip(cells, sides, strict=True)
        )
        + "</tr>"
    )


def _cell(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "-"
    return "-" if value is None else str(value)
