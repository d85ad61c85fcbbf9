"""No damage passes the checker, and none makes it fail."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import flowsched as fs
from flowsched.check import find_violations
from flowsched.plan import Table
from flowsched.plan.table import COLUMN_TYPES
from tests.planner.editing import recolumned, with_cell
from tests.strategies import Workload, graphs

SMALL = graphs(max_nodes=5, max_samples=60, max_rows=200, max_replicas=6, max_batch_size=12)


@settings(max_examples=400, deadline=None)
@given(SMALL, st.data())
def test_a_change_of_any_cell_is_caught(work: Workload, data: st.DataObject) -> None:
    plan = fs.compile(work.graph, work.samples)
    columns = {name: column for name, column in plan.table.columns() if len(column)}
    name = data.draw(st.sampled_from(sorted(columns)), label="column")
    column = columns[name]
    at = data.draw(st.integers(0, len(column) - 1), label="at")
    limits = np.iinfo(column.dtype)
    value = data.draw(
        st.sampled_from(column.tolist())  # what stands elsewhere in the column
        | st.integers(-3, 3).map(lambda difference: int(column[at]) + difference)
        | st.integers(int(limits.min), int(limits.max)),
        label="value",
    )
    assume(value != column[at])
    assert find_violations(with_cell(plan, name, at, value)) != []


@settings(max_examples=300, deadline=None)
@given(SMALL, st.data())
def test_a_table_damaged_in_many_places_is_reported_without_a_crash(
    work: Workload, data: st.DataObject
) -> None:
    plan = fs.compile(work.graph, work.samples)
    columns: dict[str, Any] = {name: column.copy() for name, column in plan.table.columns()}
    damaged = data.draw(st.lists(st.sampled_from(sorted(columns)), min_size=1, unique=True), label="columns")
    columns |= {name: data.draw(_damaged(columns[name]), label=name) for name in damaged}
    changed = recolumned(plan, **columns)
    problems = find_violations(changed)
    if _changed(changed.table, plan.table):
        assert problems != []
    for problem in problems:
        assert problem.place
        assert problem.message
        assert problem.mend


@settings(max_examples=100, deadline=None)
@given(SMALL, SMALL)
def test_the_table_of_another_graph_passes_only_where_it_is_the_same(work: Workload, other: Workload) -> None:
    table = fs.compile(other.graph, other.samples).table
    own = fs.compile(work.graph, work.samples).table
    if find_violations(fs.Plan(work.graph, work.samples, table)) == []:
        assert not _changed(table, own)


def test_the_checker_imports_nothing_of_the_planner() -> None:
    allowed = {"flowsched.errors", "flowsched.graph", "flowsched.plan", "flowsched.plan.table"}
    files = list((Path(fs.__file__).parent / "check").glob("*.py"))
    assert len(files) > 5
    for file in files:
        for line in ast.walk(ast.parse(file.read_text())):
            if isinstance(line, ast.ImportFrom) and (line.module or "").startswith("flowsched"):
                module = line.module or ""
                assert module in allowed or module.startswith("flowsched.check"), (
                    f"{file.name} imports {module}"
                )


@pytest.mark.parametrize("samples", [0, 1, 7])
def test_what_the_checker_derives_for_itself_agrees_with_the_planner(samples: int) -> None:
    nodes = [
        fs.Node("pairs", inputs=["x"], expand=6, replicas=3),
        fs.Node("best", inputs=["pairs"], collapse=3, replicas=2),
        fs.Node("join", inputs=["pairs", "best", "x"], replicas=4, batch_size=5),
    ]
    fs.check(fs.compile(fs.Graph("derived", sources=["x"], nodes=nodes), samples))


def _damaged(column: np.ndarray[Any, Any]) -> st.SearchStrategy[np.ndarray[Any, Any]]:
    """Some other column: cells changed, rows lost, repeated, turned round, another type or shape."""
    limits = np.iinfo(column.dtype)
    cells = st.integers(-2, 2) | st.integers(int(limits.min), int(limits.max))

    def changed(values: list[int]) -> np.ndarray[Any, Any]:
        result = column.copy()
        result[: len(values)] = values[: len(column)]
        return np.roll(result, len(values))

    return st.one_of(
        st.lists(cells, min_size=1, max_size=12).map(changed),
        st.sampled_from([column[:-1], column[::-1].copy(), np.concatenate([column, column]), column[:0]]),
        st.sampled_from([column.astype(np.float32), column.reshape(-1, 1), column.astype(object)]),
    )


def _changed(table: Table, other: Table) -> set[str]:
    return {
        name
        for name in COLUMN_TYPES
        if not (
            getattr(table, name).dtype == getattr(other, name).dtype
            and np.array_equal(getattr(table, name), getattr(other, name))
        )
    }
