"""The checker refuses what the planner refuses: rows that do not come from one another cannot meet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

import flowsched as fs
from flowsched.check import find_violations
from flowsched.check.sizes import find_size_problems
from flowsched.errors import CheckError, PlanError
from flowsched.graph.rows import find_rows
from flowsched.plan import Table, parse_calls
from flowsched.plan.table import COLUMN_TYPES
from tests.planner.editing import table_of


def _graph(*nodes: fs.Node) -> fs.Graph:
    return fs.Graph("hand", sources=["x"], nodes=nodes)


_COUSINS = _graph(
    fs.Node("a", inputs=["x"], expand=4),
    fs.Node("b", inputs=["x"], expand=2),
    fs.Node("j", inputs=["a", "b"]),
)
_COUSINS_BY_HAND = """\
a.0.0[0:8] <- x[0:2]
b.0.0[0:4] <- x[0:2]
j.0.0[0:8] <- a.0.0[0:8], (b.0.0[0:4]) * 2"""


def _by_hand() -> fs.Plan:
    return fs.Plan(_COUSINS, 2, table_of(_COUSINS, parse_calls(_COUSINS_BY_HAND)))


def test_a_table_made_by_hand_for_rows_that_are_only_equally_many_is_refused() -> None:
    with pytest.raises(PlanError, match="cannot meet"):
        fs.compile(_COUSINS, samples=2)
    with pytest.raises(CheckError) as caught:
        fs.check(_by_hand())
    assert [(problem.code, problem.place) for problem in caught.value.problems] == [("alignment", "node 'j'")]


def test_such_a_table_does_not_run() -> None:
    with pytest.raises(CheckError, match="node 'j'"):
        fs.run(_by_hand(), dict.fromkeys("abj", abs), {"x": np.arange(2)})


@pytest.mark.parametrize(
    "look",
    [
        str,
        fs.Plan.summary,
        fs.Plan.explain,
        lambda plan: plan.explain(node="j"),
        lambda plan: plan["j"][0],
    ],
    ids=["print", "summary", "explain", "explain node", "call"],
)
def test_whoever_looks_at_a_plan_that_cannot_be_is_told_why_it_cannot(look: Any) -> None:
    with pytest.raises(PlanError, match=r"'j'.*'a' with 8 rows.*'b' with 4 rows.*cannot meet"):
        look(_by_hand())


@pytest.mark.parametrize(
    "shape",
    [{"group": 3}, {"collapse": 3}, {"group": 8}, {"collapse": 4, "group": 8}, {"group": 18}],
    ids=str,
)
def test_groups_that_mix_the_rows_of_several_parents_are_refused(shape: dict[str, Any]) -> None:
    nodes = [fs.Node("a", inputs=["x"], expand=3), fs.Node("b", inputs=["a"], expand=4)]
    graph = _graph(*nodes, fs.Node("c", inputs=["b"], **shape))
    assert [problem.code for problem in _size_problems(graph, 6)] == ["group"]
    with pytest.raises(PlanError):
        fs.compile(graph, samples=6)


@pytest.mark.parametrize(
    "shape",
    [
        {"group": 2},
        {"collapse": 4},
        {"group": 12},
        {"collapse": 2, "group": 4},
        {"collapse": 12},
        {"group": 36},
    ],
    ids=str,
)
def test_groups_of_whole_siblings_are_taken(shape: dict[str, Any]) -> None:
    nodes = [fs.Node("a", inputs=["x"], expand=3), fs.Node("b", inputs=["a"], expand=4)]
    graph = _graph(*nodes, fs.Node("c", inputs=["b"], **shape))
    assert find_violations(fs.compile(graph, samples=6)) == []


@st.composite
def _any_graphs(draw: DrawFn) -> fs.Graph:
    names, nodes = ["x"], []
    counts = st.sampled_from([1, 1, 1, 2, 3, 4, 6])
    for at in range(draw(st.integers(1, 6))):
        inputs = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
        collapse = draw(counts)
        group = collapse * draw(counts) if draw(st.booleans()) else 1
        name = f"n{at}"
        nodes.append(fs.Node(name, inputs=inputs, expand=draw(counts), collapse=collapse, group=group))
        names.append(name)
    return _graph(*draw(st.permutations(nodes)))


@settings(max_examples=600, deadline=None)
@given(_any_graphs(), st.sampled_from([0, 1, 2, 6, 12, 144, 1728]))
def test_planner_and_checker_refuse_the_same_nodes(graph: fs.Graph, samples: int) -> None:
    rows, problems = find_rows(graph, samples)
    refused = {problem.place for problem in problems}
    found = {problem.place for problem in _size_problems(graph, samples)}
    assert refused <= found
    assert not found & {f"node {name!r}" for name in rows}


def _size_problems(graph: fs.Graph, samples: int) -> list[Any]:
    empty = Table(**{name: np.zeros(int(name == "feed"), kind) for name, kind in COLUMN_TYPES.items()})
    return list(find_size_problems(fs.Plan(graph, samples, empty)))


def test_a_plan_that_cannot_be_still_says_what_it_is() -> None:
    assert repr(_by_hand()).startswith("<Plan hand: 2 samples, 3 calls")
