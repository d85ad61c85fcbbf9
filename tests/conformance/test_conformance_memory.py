"""Batches are released after their last reader, few are alive at once, and no limit ever stops a step."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import flowsched as fs
from tests.comparing import assert_same
from tests.conformance import odd_workers as odd
from tests.conformance import row_workers as rows
from tests.conformance.conftest import RunGraph

pytestmark = pytest.mark.timeout(60)


def _chain(*, batch_size: int = 1, last: int | None = 1) -> fs.Graph:
    return fs.Graph(
        "chain",
        sources=["source"],
        nodes=[
            fs.Node("start", ["source"], batch_size=batch_size),
            fs.Node("a", ["start"], batch_size=batch_size),
            fs.Node("b", ["a"], batch_size=batch_size),
            fs.Node("c", ["b"], batch_size=last),
        ],
    )


def _models(pause: float = 0.0) -> dict[str, Any]:
    return {
        "start": _named,
        "a": partial(odd.Alive, "a_alive"),
        "b": partial(odd.Alive, "b_alive", pause),
        "c": _copied,
    }


def _copied(batch: Any) -> Any:
    return {name: column.copy() for name, column in batch.items()}


def _named(numbers: Any) -> Any:
    return {"x": numbers}


@pytest.mark.parametrize("limit", [1, 2, 3, 8])
def test_live_outputs_of_a_node_stay_within_max_in_flight(run_graph: RunGraph, limit: int) -> None:
    out = run_graph(_chain(), _models(), {"source": np.arange(200)}, max_in_flight=limit)["c"]
    assert_same(out["x"], np.arange(2, 202))
    assert out["a_alive"].max() <= limit
    assert out["b_alive"].max() <= limit


def test_live_outputs_of_a_node_are_few_by_default(run_graph: RunGraph) -> None:
    out = run_graph(_chain(), _models(), {"source": np.arange(200)})["c"]
    assert out["a_alive"].max() <= 4
    assert out["b_alive"].max() <= 4


def test_a_producer_waits_for_a_slow_consumer(run_graph: RunGraph) -> None:
    out = run_graph(_chain(), _models(pause=0.003), {"source": np.arange(60)}, max_in_flight=2)["c"]
    assert out["a_alive"].max() <= 2


def test_live_outputs_stay_few_where_several_nodes_read_them(run_graph: RunGraph) -> None:
    graph = fs.Graph(
        "fan",
        sources=["source"],
        nodes=[
            fs.Node("start", ["source"], batch_size=1),
            fs.Node("a", ["start"], batch_size=1),
            fs.Node("slow", ["a"], batch_size=3),
            fs.Node("fast", ["a"], replicas=2, batch_size=1),
            fs.Node("c", ["slow", "fast"], batch_size=4),
        ],
    )
    models = {
        "start": _named,
        "a": partial(odd.Alive, "a_alive"),
        "slow": partial(odd.Alive, "slow_alive", 0.002),
        "fast": _copied,
        "c": rows.join,
    }
    out = run_graph(graph, models, {"source": np.arange(120)}, max_in_flight=6)["c"]
    assert_same(out["input0"]["x"], np.arange(2, 122))
    assert out["input1"]["a_alive"].max() <= 6


def test_a_node_that_needs_everything_does_not_wait_for_itself(run_graph: RunGraph) -> None:
    out = run_graph(_chain(last=None), _models(), {"source": np.arange(100)}, max_in_flight=1)["c"]
    assert_same(out["x"], np.arange(2, 102))
    assert out["a_alive"].max() <= 1


@pytest.mark.parametrize(("left", "right"), [(1, None), (None, 1), (1, 7), (5, 1), (3, 4)])
def test_a_diamond_with_a_slow_branch_goes_on_with_one_call_in_flight(
    run_graph: RunGraph, left: int | None, right: int | None
) -> None:
    graph = fs.Graph(
        "diamond",
        sources=["x"],
        nodes=[
            fs.Node("top", ["x"], replicas=2, batch_size=2),
            fs.Node("slow", ["top"], batch_size=left),
            fs.Node("fast", ["top"], replicas=2, batch_size=right),
            fs.Node("both", ["slow", "fast", "top"], replicas=2, batch_size=3),
        ],
    )
    models = {"top": rows.add_one, "slow": rows.add_one_late, "fast": rows.pass_on, "both": rows.join}
    out = run_graph(graph, models, {"x": np.arange(25)}, max_in_flight=1)["both"]
    assert_same(out, {"input0": np.arange(2, 27), "input1": np.arange(1, 26), "input2": np.arange(1, 26)})


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.tuples(st.integers(1, 5), st.none() | st.integers(1, 9)), min_size=5, max_size=5),
    after=st.booleans(),
    samples=st.integers(0, 60),
    limit=st.integers(1, 3),
)
def test_no_diamond_ever_waits_for_itself(
    run_graph: RunGraph, sizes: list[tuple[int, int | None]], after: bool, samples: int, limit: int
) -> None:
    cuts: list[dict[str, Any]] = [{"replicas": count, "batch_size": size} for count, size in sizes]
    top, slow, fast, longer, both = cuts
    graph = fs.Graph(
        "diamond",
        sources=["x"],
        nodes=[
            fs.Node("top", ["x"], **top),
            fs.Node("slow", ["top"], **slow),
            fs.Node("fast", ["top"], **fast),
            fs.Node("longer", ["fast"], **longer, after=["slow"] if after else []),
            fs.Node("both", ["slow", "longer", "top"], **both),
        ],
    )
    models = {
        "top": rows.add_one,
        "slow": _late,
        "fast": rows.add_one,
        "longer": rows.pass_on,
        "both": rows.join,
    }
    out = run_graph(graph, models, {"x": np.arange(samples)}, max_in_flight=limit)["both"]
    if samples:
        ones = np.arange(1, samples + 1)
        assert_same(out, {"input0": ones, "input1": ones + 1, "input2": ones})


def _late(numbers: Any) -> Any:
    time.sleep(0.0005)
    return numbers


def test_after_and_shared_replicas_go_on_with_one_call_in_flight(run_graph: RunGraph) -> None:
    graph = fs.Graph(
        "waiting",
        sources=["x"],
        nodes=[
            fs.Node("policy", ["x"], replicas=2, batch_size=1),
            fs.Node("score", ["policy"], replicas_of="policy", batch_size=2),
            fs.Node("reward", ["score"], batch_size=1, after=["policy"]),
            fs.Node("train", ["reward", "policy"], replicas_of="policy", after=["score"]),
        ],
    )
    out = run_graph(
        graph, {"policy": rows.join, "reward": rows.pass_on}, {"x": np.arange(15)}, max_in_flight=1
    )
    policy = {"input0": np.arange(15)}
    assert_same(out["train"], {"input0": {"input0": policy}, "input1": policy})
