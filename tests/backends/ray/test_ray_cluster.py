"""Placing on a cluster of three nodes: by resources, strategies and colocation; what cannot be is refused."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import flowsched as fs
from flowsched.errors import BackendError, CapacityError
from tests.backends.ray import workers

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("cluster")]

ONE = fs.Graph("one", ["x"], [fs.Node("a", ["x"], replicas=2)])
TWO = fs.Graph("two", ["x"], [fs.Node("a", ["x"], replicas=2), fs.Node("b", ["x"], replicas=2)])


def _places(graph: fs.Graph, **options: Any) -> dict[str, Any]:
    """Run each replica of a graph once and return what it said."""
    models = {node.name: workers.say_place for node in graph}
    inputs = {"x": np.arange(max(node.replicas for node in graph))}
    return dict(fs.run(fs.compile(graph, len(inputs["x"])), models, inputs, backend="ray", **options))


def test_replicas_go_where_their_custom_resource_is(node_ids: dict[str, str]) -> None:
    out = _places(TWO, resources={"a": {"middle": 1}, "b": {"right": 2}})
    assert set(out["a"]["place"]) == {node_ids["middle"]}
    assert set(out["b"]["place"]) == {node_ids["right"]}


def test_fractions_of_gpus_are_shared_and_the_device_is_the_first_that_is_visible(
    node_ids: dict[str, str],
) -> None:
    out = _places(fs.Graph("g", ["x"], [fs.Node("a", ["x"], replicas=4)]), num_gpus=0.5)["a"]
    assert set(out["place"]) == {node_ids["middle"]}
    assert sorted(out["visible"]) == ["0", "0", "1", "1"]
    assert set(out["device"]) == {"cuda:0"}


def test_replicas_without_gpus_have_no_device() -> None:
    assert set(_places(ONE)["a"]["device"]) == {None}


def test_strict_spread_puts_each_replica_on_a_node_of_its_own(node_ids: dict[str, str]) -> None:
    graph = fs.Graph("g", ["x"], [fs.Node("a", ["x"], replicas=3)])
    assert set(_places(graph, placement="STRICT_SPREAD")["a"]["place"]) == set(node_ids.values())


def test_strict_pack_puts_all_replicas_on_one_node_and_each_model_has_its_own_strategy(
    node_ids: dict[str, str],
) -> None:
    assert node_ids
    out = _places(TWO, placement={"a": "STRICT_PACK", "b": "STRICT_SPREAD"}, num_cpus={"a": 1})
    assert len(set(out["a"]["place"])) == 1
    assert len(set(out["b"]["place"])) == 2


def test_colocated_replicas_of_two_nodes_share_a_place(node_ids: dict[str, str]) -> None:
    assert node_ids
    out = _places(TWO, colocate=[["a", "b"]], placement={"a": "STRICT_SPREAD"})
    assert out["a"]["place"] == out["b"]["place"]
    assert len(set(out["a"]["place"])) == 2


def test_a_runtime_environment_is_that_of_its_node_alone() -> None:
    out = _places(TWO, runtime_env={"a": {"env_vars": {"FLOWSCHED_WORD": "one"}}})
    assert set(out["a"]["word"]) == {"one"}
    assert set(out["b"]["word"]) == {None}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"num_gpus": 2}, "1 of 2 replicas of a can be placed"),
        ({"resources": {"tape": 1}}, "0 of 2 replicas of a can be placed"),
        ({"num_cpus": 2, "placement": "STRICT_PACK"}, "1 of 2 replicas of a can be placed on one node"),
        ({"resources": {"left": 1}, "placement": "STRICT_SPREAD"}, "on a node of its own"),
    ],
)
def test_what_cannot_be_placed_is_refused_at_once_node_by_node(options: Any, said: str) -> None:
    began = time.monotonic()
    with pytest.raises(CapacityError) as caught:
        fs.start(ONE, {"a": workers.pass_on}, backend="ray", **options)
    assert time.monotonic() - began < 5
    text = str(caught.value)
    assert said in text
    assert "asked for:\n  2 x a with " in text
    for name in ("left 4 of 4 free", "middle 4 of 4 free", "right 4 of 4 free", "GPU 2 of 2 free"):
        assert name in text


def test_what_others_use_is_not_there() -> None:
    models = {"a": workers.pass_on}
    with (
        fs.start(ONE, models, backend="ray", resources={"left": 2}),
        pytest.raises(
            CapacityError, match=r"0 of 2 replicas of a can be placed while others use it"
        ) as caught,
    ):
        fs.start(ONE, models, backend="ray", resources={"left": 1})
    assert "left 0 of 4 free" in str(caught.value)
    with fs.start(ONE, models, backend="ray", resources={"left": 2}) as session:  # what ended is there again
        assert session.run({"x": np.arange(3)})["a"].tolist() == [0, 1, 2]


def test_what_ray_does_not_start_in_time_is_an_error() -> None:
    with pytest.raises(
        CapacityError, match=r"Ray started 0 of 2 replicas, and none of the others within 0.01 s"
    ):
        fs.start(
            ONE,
            {"a": workers.pass_on},
            backend="ray",
            runtime_env={"env_vars": {"FLOWSCHED_WORD": "new"}},
            start_timeout=0.01,
        )


def test_the_address_of_the_cluster_is_that_of_the_connection_or_refused(cluster: Any) -> None:
    with fs.start(ONE, {"a": workers.add_one}, backend="ray", address=cluster.address) as session:
        assert session.run({"x": np.arange(3)})["a"].tolist() == [1, 2, 3]
    with pytest.raises(
        BackendError, match=r"address='10.9.9.9:6379' was given, and this process is connected"
    ):
        fs.start(ONE, {"a": workers.add_one}, backend="ray", address="10.9.9.9:6379")
