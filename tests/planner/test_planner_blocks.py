"""Large plans are made block by block of calls, which nothing about a plan may show."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowsched as fs
from flowsched.check import check_plan
from flowsched.planner import cut
from tests.strategies import Workload, graphs


@given(workload=graphs(max_samples=300, max_rows=2_000), calls=st.integers(1, 40))
def test_a_plan_is_the_same_however_many_calls_a_block_has(workload: Workload, calls: int) -> None:
    graph, samples = workload
    whole = fs.compile(graph, samples)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cut, "BLOCK", calls)
        in_blocks = fs.compile(graph, samples)
    assert in_blocks.hash == whole.hash


@pytest.mark.parametrize("samples", [cut.BLOCK - 1, cut.BLOCK, cut.BLOCK + 1, 3 * cut.BLOCK + 1])
def test_a_plan_of_several_blocks_keeps_every_promise(samples: int) -> None:
    graph = fs.Graph(
        "large",
        sources=["prompts"],
        nodes=[
            fs.Node("policy", inputs=["prompts"], replicas=7, batch_size=3),
            fs.Node("reward", inputs=["policy", "prompts"], replicas=100, batch_size=1),
            fs.Node(
                "loss", inputs=["reward", "policy"], replicas_of="policy", batch_size=2, after=["reward"]
            ),
        ],
    )
    plan = fs.compile(graph, samples)
    assert plan.table.calls > samples
    check_plan(plan)
