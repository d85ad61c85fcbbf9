"""What ``print(plan)`` shows: how each node's replicas are used, why, and which samples go where."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from flowsched.inspect.align import align
from flowsched.inspect.arithmetic import count, say_extent, say_split, say_spread
from flowsched.inspect.hints import MOST_PRINTED, PYTHON_HINTS, Hints
from flowsched.inspect.lanes import draw_lanes
from flowsched.inspect.listing import WIDTH, list_calls
from flowsched.inspect.summary import NodeSummary, count_idle, summarise
from flowsched.plan import Plan

HEADER = (
    "node",
    "reads",
    "replicas",
    "idle",
    "waves",
    "calls",
    "rows",
    "rows/replica",
    "rows/call",
    "fragments/call",
)
NUMBER_COLUMNS = (False, False, *[True] * 8)
_FEW_CALLS = 32
_NARROWEST_TEXT = 40


def render_plan(plan: Plan, hints: Hints = PYTHON_HINTS) -> str:
    """Return a plan as plain text of at most 110 columns, unless the names of nodes are very long.

    Small plans are shown in full, as lanes of calls over samples. Of large plans each node's first and last
    calls are shown, and only those are turned from columns into text.
    """
    summaries = summarise(plan)
    blocks = [[heading(plan)], summary_table(summaries), *routing_blocks(plan, summaries, hints)]
    blocks.append([f"  {hint(plan, hints)}"])
    return "\n\n".join("\n".join(block) for block in blocks)


def routing_blocks(
    plan: Plan, summaries: Sequence[NodeSummary], hints: Hints = PYTHON_HINTS
) -> list[list[str]]:
    """Return which calls read which rows, and the arithmetic behind it, in blocks of lines.

    Small plans are drawn as lanes over the samples; of larger ones each node's calls are listed.
    """
    lanes = draw_lanes(plan, WIDTH - 2)
    if lanes:
        title = "  Calls over the samples that they read, as replica.call:"
        return [reasons(summaries), [title, *(f"  {lane}" for lane in lanes)]]
    return [routing(plan, summaries, hints)] if plan.table.calls else []


def heading(plan: Plan) -> str:
    """Return one line: the graph, its sizes, and the plan's hash."""
    graph = plan.graph
    replicas = sum(owner.replicas for owner in graph.owners())
    idle = count_idle(plan)
    return (
        f"{graph.name}: {count(plan.samples, 'sample')} through {count(len(graph), 'node')}: "
        f"{count(plan.table.calls, 'call')} on {count(replicas, 'replica')}, "
        f"{f'{idle:,}' if idle else 'none'} idle (plan {plan.hash[:12]})"
    )


def summary_table(summaries: Sequence[NodeSummary], width: int = WIDTH) -> list[str]:
    """Return a header and one line a node.

    Where that is wider than ``width``, names of inputs are left out and numbers given as ranges. Where it is
    wider still, the last column goes, and a line below says so.
    """
    full, brief = (
        [HEADER, *(summary_cells(row, brief=brief) for row in summaries)] for brief in (False, True)
    )
    for cells in (full, _with_short_reads(full, width), _with_short_reads(brief, width)):
        lines = align(cells, NUMBER_COLUMNS)
        if max(map(len, lines)) <= width:
            return lines
    lines = align(_with_short_reads([row[:-1] for row in brief], width), NUMBER_COLUMNS[:-1])
    return [*lines, "  (There is no room for the fragments of each call; explaining a node gives them.)"]


def summary_cells(summary: NodeSummary, *, brief: bool = False) -> tuple[str, ...]:
    """Return the cells of one node under ``HEADER``, in ``brief`` with ranges instead of what has each size."""
    shared = "" if summary.owner == summary.node else f" of {summary.owner}"
    loads = summary.loads
    return (
        summary.node,
        ", ".join(summary.inputs),
        f"{summary.replicas:,}{shared}",
        f"{summary.idle:,}",
        f"{summary.waves:,}",
        f"{summary.calls:,}",
        f"{summary.rows:,}",
        say_extent(loads[-1][0], loads[0][0]) if brief and loads else say_spread(loads),
        say_extent(summary.smallest_call, summary.largest_call) if summary.calls else "-",
        _say_fragments(summary.fragments_per_call, most=1 if brief else 3),
    )


def reasons(summaries: Sequence[NodeSummary]) -> list[str]:
    """Return the arithmetic of each node, one below the other."""
    widest = max(len(summary.node) for summary in summaries)
    lines = []
    for summary in summaries:
        lines += wrap(f"  {summary.node.ljust(widest)}  ", say_split(summary))
    return lines


def routing(plan: Plan, summaries: Sequence[NodeSummary], hints: Hints) -> list[str]:
    """Return each node's arithmetic, and below it its calls, or the first and last of many."""
    limit = _FEW_CALLS if plan.table.calls <= _FEW_CALLS else 3
    lines = []
    for calls, summary in zip(plan, summaries, strict=True):
        lines += wrap(f"  {summary.node}: ", say_split(summary))
        few = len(calls) <= MOST_PRINTED
        more = hints.print_calls(calls.name) if few else hints.explain_node(calls.name)
        lines += list_calls(plan, calls.numbers, limit, WIDTH, more, "    ")
    return lines


def hint(plan: Plan, hints: Hints) -> str:
    """Return how to see more of a plan."""
    if not plan.table.calls:
        return "Nothing to run: there are no rows."
    name = plan.graph.outputs[-1]
    ways = [hints.print_calls(name)] if len(plan[name]) <= MOST_PRINTED else []
    ways += [hints.explain_sample(plan.samples // 3), hints.explain_node(name)]
    return f"More: {', '.join(ways)}"


def wrap(head: str, text: str, width: int = WIDTH) -> list[str]:
    """Return ``text`` after ``head`` in lines of at most ``width``, broken after semicolons where possible."""
    room = max(width - len(head), _NARROWEST_TEXT)
    *parts, end = text.split("; ")
    lines: list[str] = []
    for part in [*(f"{part};" for part in parts), end]:
        if lines and len(lines[-1]) + len(part) + 1 <= room:
            lines[-1] += f" {part}"
        else:
            lines += textwrap.wrap(part, room, break_long_words=False, break_on_hyphens=False)
    return [(" " * len(head) if i else head) + line for i, line in enumerate(lines)]


def _say_fragments(per_call: Sequence[tuple[int, int]], most: int) -> str:
    said = [say_extent(*extent) for extent in per_call]
    if len(said) > most:
        return say_extent(min(low for low, _ in per_call), max(high for _, high in per_call)) + " each"
    return ", ".join(said)


def _with_short_reads(rows: Sequence[tuple[str, ...]], width: int) -> list[tuple[str, ...]]:
    surplus = max(map(len, align(rows))) - width
    room = max(len(row[1]) for row in rows) - surplus
    return [(name, _fit_names(reads, room), *others) for name, reads, *others in rows]


def _fit_names(names: str, room: int) -> str:
    """Leave out names at the end until the others fit; count them where that is shorter than any."""
    parts = names.split(", ")
    for shown in range(len(parts), 0, -1):
        fitting = ", ".join(parts[:shown]) + (f", +{len(parts) - shown}" if shown < len(parts) else "")
        if len(fitting) <= room:
            return fitting
    return min(names, f"{len(parts)} input{'s' if len(parts) > 1 else ''}", key=len)
