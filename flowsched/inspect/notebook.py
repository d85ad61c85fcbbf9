"""What notebooks show: static tables, without scripts, in the colours of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from html import escape

from flowsched.graph import Graph, Node
from flowsched.inspect.summary import summarise
from flowsched.inspect.text import HEADER, NUMBER_COLUMNS, heading, routing_blocks, summary_cells
from flowsched.plan import Plan

_RULE = "1px solid rgba(128, 128, 128, 0.4)"  # half-way grey shows on white as on black


def plan_html(plan: Plan) -> str:
    """Return a plan as HTML: its heading, the table of its nodes, and below which calls read which rows."""
    summaries = summarise(plan)
    below = "\n\n".join("\n".join(block) for block in routing_blocks(plan, summaries))
    table = _table(HEADER, [summary_cells(summary) for summary in summaries], NUMBER_COLUMNS)
    shown = f'<pre style="background: transparent; color: inherit">{escape(below)}</pre>' if below else ""
    return f"<div><p>{escape(heading(plan))}</p>{table}{shown}</div>"


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
