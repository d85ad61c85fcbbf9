"""Every reported case is planned as it should have been; the ids are those of cases.json."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import flowsched as fs
from flowsched.errors import GraphError
from tests.cases.reported import AT_RUN_TIME, CASES, PART_WAITS, PLANNED, WAITING, Run, graph_of, runs_of

RUNS = [
    pytest.param(run, id=f"{case}-{run.samples}" if number else case)
    for case in PLANNED
    for number, run in enumerate(runs_of(case))
]


@pytest.mark.parametrize("run", RUNS)
def test_reported_case_is_planned_as_it_should_be(run: Run) -> None:
    plan = fs.compile(run.graph, run.samples)
    fs.check(plan)
    for key, expected in run.check.items():
        if key in CHECKS:
            CHECKS[key](plan, expected)


@pytest.mark.parametrize("samples", [1024, 1000, 1030, 40, 7])
def test_s02_the_longest_of_four_evaluating_processes_has_as_many_batches_as_it_should(samples: int) -> None:
    plan = fs.compile(evaluation(), samples)
    fs.check(plan)
    batches = [len([call for call in plan["eval"] if call.replica == replica]) for replica in range(4)]
    assert max(batches) == CASES["S02"]["check"]["len_eval"][str(samples)]


def test_b12_a_batch_size_of_zero_is_refused_at_once_with_node_and_value() -> None:
    began = time.perf_counter()
    with pytest.raises(GraphError) as caught:
        graph_of("B12")
    assert time.perf_counter() - began < CASES["B12"]["check"]["max_seconds"]
    assert all(word in str(caught.value) for word in CASES["B12"]["check"]["error"]["mentions"])
    assert "batch_size is 0" in str(caught.value)


def test_b10_two_samples_for_four_replicas_are_both_processed() -> None:
    plan = fs.compile(graph_of("B10", replicas=4), 2)
    assert [call.replica for call in plan["llm"]] == [0, 1]


def test_b19_inference_nodes_are_not_padded_for_the_trainer() -> None:
    plan = fs.compile(graph_of("B19"), 37)
    assert all(rows.read == 1 for rows in plan.rows.values())


def test_g01_without_whole_groups_the_loads_differ_by_one_sample() -> None:
    plan = fs.compile(graph_of("G01", group_size=1), 40)
    check_counts(plan, {"gen": [14, 13, 13]})


def test_e02_the_joined_rows_are_as_many_as_the_expanded_ones() -> None:
    plan = fs.compile(graph_of("E02"), 1024)
    assert plan["adv"][-1].stop == CASES["E02"]["check"]["either"][0]["rows"]["adv"]


def test_every_case_is_tested_or_listed_with_what_it_waits_for() -> None:
    assert set(PLANNED) | set(WAITING) | {"S02", "B12"} == set(CASES)
    assert not set(PLANNED) & set(WAITING)
    assert set(PART_WAITS) <= set(CASES) - set(WAITING)
    assert len(CASES) == 73


def test_every_check_of_a_case_is_made_or_listed_with_what_it_waits_for() -> None:
    for case in CASES:
        if case not in WAITING:
            waits = PART_WAITS[case][1] if case in PART_WAITS else set()
            made = set(CHECKS) | ELSEWHERE.get(case, set()) | AT_RUN_TIME.get(case, set()) | waits
            assert set(CASES[case]["check"]) <= made | IN_EVERY_RUN, case


def test_every_check_at_run_time_has_a_test_of_its_own() -> None:
    tests = "".join(file.read_text("utf-8") for file in Path(__file__).parent.glob("test_*_at_run_time.py"))
    for case in AT_RUN_TIME:
        assert f"\ndef test_{case.lower()}_" in tests, case


def evaluation() -> fs.Graph:
    """Return the evaluation of S02: four processes, batches of 16."""
    node = fs.Node("eval", inputs=["prompts"], replicas=4, batch_size=16)
    return fs.Graph("S02", sources=["prompts"], nodes=[node])


def check_counts(plan: fs.Plan, expected: dict[str, list[int]]) -> None:
    """Samples per replica, sorted downwards; those of training nodes are left out."""
    for name, counts in expected.items():
        if name in plan.graph:
            loads = [0] * plan.graph[name].replicas
            for call in plan[name]:
                loads[call.replica] += call.stop - call.start
            assert sorted(loads, reverse=True) == counts, name


def check_calls(plan: fs.Plan, expected: dict[str, int]) -> None:
    """Number of calls."""
    assert {name: len(plan[name]) for name in expected} == expected


def check_max_call(plan: fs.Plan, expected: dict[str, int]) -> None:
    """The most rows that a call may have."""
    for name, most in expected.items():
        assert max(call.stop - call.start for call in plan[name]) <= most, name


def check_idle(plan: fs.Plan, expected: int) -> None:
    """Replicas without a call, over all nodes, counted from the calls."""
    used = {(call.node, call.replica) for node in plan for call in node}
    assert sum(node.replicas for node in plan.graph) - len(used) == expected


def check_reported_idle(plan: fs.Plan, expected: int) -> None:
    """Replicas without a call, as the plan's own summary says."""
    assert sum(node.idle for node in plan.summary()) == expected


def check_empty_calls(plan: fs.Plan, expected: int) -> None:
    """Calls without rows."""
    assert len([call for node in plan for call in node if call.start == call.stop]) == expected


def check_fragments(plan: fs.Plan, expected: dict[str, list[int]]) -> None:
    """Fragments of each input, the same for all calls of the node."""
    for name, counts in expected.items():
        for call in plan[name]:
            assert [len(feed.fragments) for feed in call.feeds] == counts, str(call)


def check_groups_whole(plan: fs.Plan, expected: bool) -> None:
    """Whether calls of nodes with groups begin and end between groups."""
    for node in plan.graph:
        starts = {call.start % node.group for call in plan[node.name]}
        assert (starts == {0}) == expected, node.name


def check_last_flags(plan: fs.Plan, expected: int) -> None:
    """Calls of each replica with which its queue ends."""
    for node in plan:
        calls = list(node)
        for replica in {call.replica for call in calls}:
            own = [call.position for call in calls if call.replica == replica]
            assert len([position for position in own if position == len(own) - 1]) == expected


CHECKS: dict[str, Callable[[fs.Plan, Any], None]] = {
    "counts": check_counts,
    "calls": check_calls,
    "max_call": check_max_call,
    "idle": check_idle,
    "reported_idle": check_reported_idle,
    "empty_calls": check_empty_calls,
    "fragments_per_input": check_fragments,
    "groups_whole": check_groups_whole,
    "last_flags_per_replica": check_last_flags,
}
IN_EVERY_RUN = {"runs", "coverage", "order"}
ELSEWHERE = {"B12": {"error", "max_seconds"}, "S02": {"len_eval"}}
