"""Numbers beyond what a plan can hold are refused with the number, before memory is taken for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowsched as fs
from flowsched.check import find_violations
from flowsched.errors import CheckError, GraphError, PlanError
from flowsched.inspect.summary import count_idle
from flowsched.plan import Table
from flowsched.plan.table import COLUMN_TYPES

HUGE = [2**31, 2**63, 10**12, 10**30, 10**5000]


def _graph(*nodes: fs.Node) -> fs.Graph:
    return fs.Graph("limits", sources=["x"], nodes=nodes)


def _single(**row: Any) -> fs.Graph:
    return _graph(fs.Node("m", inputs=["x"], **row))


def _problem(graph: fs.Graph, samples: int) -> tuple[str, str, str]:
    with pytest.raises(PlanError) as caught:
        fs.compile(graph, samples)
    (problem,) = caught.value.problems
    return problem.code, problem.place, problem.message


@pytest.mark.parametrize("field", ["replicas", "batch_size", "expand", "group", "collapse"])
@pytest.mark.parametrize("count", HUGE, ids=lambda count: f"{count.bit_length()} bits")
def test_a_count_above_what_columns_can_number_is_no_graph(field: str, count: int) -> None:
    with pytest.raises(GraphError, match="2147483647 or less") as caught:
        _single(**{field: count})
    assert {problem.code for problem in caught.value.problems} == {"too-large"}


@pytest.mark.parametrize(
    "row", [{}, {"replicas": 3, "batch_size": 2**31 - 1}, {"replicas": 2**31 - 1}], ids=str
)
@pytest.mark.parametrize(
    "samples", [2**62 + 1, 2**63, 10**30, 10**5000], ids=lambda n: f"{n.bit_length()} bits"
)
def test_more_samples_than_rows_can_be_counted_are_refused(row: dict[str, Any], samples: int) -> None:
    code, place, message = _problem(_single(**row), samples)
    assert (code, place) == ("too-many-rows", "samples")
    assert "rows" in message


@pytest.mark.parametrize("samples", [0, -1, -(10**5000)], ids=["0", "-1", "far below 0"])
def test_negative_samples_of_any_size_are_refused(samples: int) -> None:
    if samples == 0:
        assert fs.compile(_single(), 0).table.calls == 0
    else:
        assert _problem(_single(), samples)[0] == "bad-samples"


def test_as_many_samples_as_rows_can_be_counted_are_planned_and_checked_exactly() -> None:
    plan = fs.compile(_single(replicas=3), samples=2**62)
    assert find_violations(plan) == []
    (summary,) = plan.summary()
    assert summary.loads == ((2**62 // 3 + 1, 1), (2**62 // 3, 2))
    assert sum(rows * replicas for rows, replicas in summary.loads) == 2**62
    assert str(plan)


def test_rows_that_expansions_multiply_beyond_counting_are_refused_with_the_node() -> None:
    nodes = [fs.Node("n0", inputs=["x"], expand=2**31 - 1)]
    nodes += [fs.Node(f"n{at}", inputs=[f"n{at - 1}"], expand=2**31 - 1) for at in range(1, 600)]
    code, place, message = _problem(_graph(*nodes), samples=1)
    assert (code, place) == ("too-many-rows", "node 'n2'")
    assert f"makes {(2**31 - 1) ** 3} rows of {(2**31 - 1) ** 2}" in message


@pytest.mark.parametrize("samples", [0, 1, 5])
def test_the_checker_says_so_too_of_a_plan_made_by_hand(samples: int) -> None:
    nodes = [fs.Node("n0", inputs=["x"], expand=2**31 - 1)]
    nodes += [fs.Node(f"n{at}", inputs=[f"n{at - 1}"], expand=2**31 - 1) for at in range(1, 600)]
    empty = Table(**{name: np.zeros(int(name == "feed"), kind) for name, kind in COLUMN_TYPES.items()})
    with pytest.raises(CheckError, match="'n2'"):
        fs.check(fs.Plan(_graph(*nodes), samples, empty))


def test_more_calls_than_can_be_numbered_are_refused_with_the_node_and_the_number() -> None:
    nodes = [fs.Node("few", inputs=["x"]), fs.Node("many", inputs=["few"], batch_size=1, replicas=7)]
    code, place, message = _problem(_graph(*nodes), samples=10**15)
    assert (code, place) == ("too-many-calls", "node 'many'")
    assert f"{10**15} of the {10**15 + 1} calls" in message
    assert _problem(_single(batch_size=1), 2**31)[0] == "too-many-calls"


def test_a_thousand_million_replicas_cost_no_more_than_those_that_have_calls() -> None:
    owner = fs.Node("a", inputs=["x"], replicas=10**9, batch_size=2)
    plan = fs.compile(_graph(owner, fs.Node("b", inputs=["a"], replicas_of="a")), samples=16)
    assert find_violations(plan) == []
    first, second = plan.summary()
    assert (first.used, first.idle, second.used) == (16, 10**9 - 16, 16)
    assert count_idle(plan) == 10**9 - 16
    assert "999,999,984 idle" in str(plan)
    assert plan.explain(replica="a.999999999").to_dict()["idle"]


@pytest.mark.parametrize("replica", [10**9 - 1, 16])
def test_a_call_far_out_among_many_replicas_is_reported(replica: int) -> None:
    plan = fs.compile(_single(replicas=10**9), samples=16)
    columns = {name: column.copy() for name, column in plan.table.columns()}
    columns["replica"][3] = replica
    codes = {problem.code for problem in find_violations(fs.Plan(plan.graph, 16, Table(**columns)))}
    assert codes == {"determinism"}
    assert fs.Plan(plan.graph, 16, Table(**columns)).summary()[0].used == 16
