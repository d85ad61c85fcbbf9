"""Which samples the rows of a call carry, where rows were collapsed and expanded on the way."""

from __future__ import annotations

import pytest
from hypothesis import assume, given

import flowsched as fs
from flowsched.inspect.lineage import follow_sample
from tests.strategies import Workload, graphs


def test_rows_of_merged_samples_carry_all_of_them() -> None:
    graph = fs.Graph(
        "merge",
        sources=["x"],
        nodes=[
            fs.Node("merge", inputs=["x"], collapse=3, expand=2),
            fs.Node("read", inputs=["merge"], batch_size=1),
        ],
    )
    plan = fs.compile(graph, samples=6)
    assert [plan.samples_of(number) for number in plan["read"].numbers] == [(0, 3), (0, 3), (3, 6), (3, 6)]


@pytest.mark.parametrize(("expand", "expected"), [(1, [(0, 2), (2, 4)]), (4, [(0, 2), (2, 4)])])
def test_rows_of_expanded_samples_carry_their_own(expand: int, expected: list[tuple[int, int]]) -> None:
    nodes = [
        fs.Node("first", inputs=["x"], expand=expand),
        fs.Node("read", inputs=["first"], batch_size=2 * expand),
    ]
    plan = fs.compile(fs.Graph("g", ["x"], nodes), samples=4)
    assert [plan.samples_of(number) for number in plan["read"].numbers] == expected


@given(graphs(max_nodes=4, max_samples=40, max_replicas=6))
def test_where_nothing_collapses_the_samples_of_a_call_are_those_that_pass_it(workload: Workload) -> None:
    assume(all(node.collapse == 1 for node in workload.graph))
    plan = fs.compile(workload.graph, workload.samples)
    passing: dict[int, list[int]] = {number: [] for number in range(plan.table.calls)}
    for sample in range(plan.samples):
        for passage in follow_sample(plan, sample).values():
            for number in passage.calls:
                passing[number].append(sample)
    for number, samples in passing.items():
        assert samples == list(range(*plan.samples_of(number)))
