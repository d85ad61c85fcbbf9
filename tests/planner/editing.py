"""Plans with something changed, for tests of the checker: by their call notation, or column by column."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flowsched import Graph, Plan
from flowsched.check import find_violations
from flowsched.plan import Call, Table, parse_calls


def notation(plan: Plan) -> str:
    """Return all calls of a plan in call notation, one a line."""
    return "\n".join(str(calls) for calls in plan if len(calls))


def rewritten(plan: Plan, *changes: tuple[str, str]) -> Plan:
    """Return the plan with texts of its notation replaced; each old text must be there once.

    A call's wave is the number of calls of its replica and node in the lines before, its place in the
    sequence is its line.
    """
    text = notation(plan)
    for old, new in changes:
        assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times in\n{text}"
        text = text.replace(old, new)
    return Plan(plan.graph, plan.samples, table_of(plan.graph, parse_calls(text)))


def recolumned(plan: Plan, **columns: Any) -> Plan:
    """Return the plan with whole columns of its table replaced, as they are given."""
    table = Table(**dict(plan.table.columns()))
    for name, column in columns.items():
        object.__setattr__(table, name, column)  # past the conversion that a table does when it is made
    return Plan(plan.graph, plan.samples, table)


def with_cell(plan: Plan, column: str, at: int, value: int) -> Plan:
    """Return the plan with one cell of its table replaced."""
    changed: NDArray[Any] = dict(plan.table.columns())[column].copy()
    changed[at] = value
    return recolumned(plan, **{column: changed})


def number_of(plan: Plan, call: str) -> int:
    """Return the number in the table of the call that is named ``node.replica.position``."""
    names = [each.name for calls in plan for each in calls]
    return names.index(call)


def codes(plan: Plan) -> set[str]:
    """Return the codes of all violations."""
    return {problem.code for problem in find_violations(plan)}


def blamed(plan: Plan, code: str) -> str:
    """Return place and message of the one violation with this code."""
    problems = find_violations(plan)
    found = [f"{problem.place}: {problem.message}" for problem in problems if problem.code == code]
    assert len(found) == 1, f"expected one problem {code!r}, found {[str(problem) for problem in problems]}"
    return found[0]


def table_of(graph: Graph, calls: list[Call]) -> Table:
    """Return the table that holds these calls as they are."""
    numbers = {call.name: number for number, call in enumerate(calls)}
    waves: Counter[tuple[str, int]] = Counter()
    columns: dict[str, list[int]] = defaultdict(list, {field.name: [] for field in fields(Table)})
    columns["feed"].append(0)
    for number, call in enumerate(calls):
        node = graph[call.node]
        row = {
            "node": graph.index(call.node),
            "replica": call.replica,
            "wave": waves[call.node, call.replica],
            "position": call.position,
            "start": call.start // node.expand * node.collapse,
            "stop": call.stop // node.expand * node.collapse,
            "sequence": number,
        }
        waves[call.node, call.replica] += 1
        for feed in call.feeds:
            for fragment in feed.fragments:
                source = fragment.producer in graph.sources
                number_read = (
                    -1 - graph.sources.index(fragment.producer) if source else numbers[fragment.producer]
                )
                columns["producer"].append(number_read)
                columns["fragment_start"].append(fragment.start)
                columns["fragment_stop"].append(fragment.stop)
            columns["feed"].append(len(columns["producer"]))
        for name, value in row.items():
            columns[name].append(value)
    return Table(**{name: np.array(column) for name, column in columns.items()})
