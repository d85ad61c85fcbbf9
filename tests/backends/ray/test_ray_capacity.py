"""What a cluster can hold, worked out without one."""

from __future__ import annotations

import pytest
from flowsched_ray.capacity import Demand, Machine, find_obstacle, say_refusal

MACHINES = [{"CPU": 4.0, "GPU": 1.0}, {"CPU": 4.0, "GPU": 1.0}, {"CPU": 8.0, "disk": 2.0}]


def _demand(count: int, strategy: str | None = None, **each: float) -> Demand:
    return Demand(("policy",), count, each, strategy)


@pytest.mark.parametrize(
    "demand",
    [
        _demand(16, CPU=1),
        _demand(2, GPU=1),
        _demand(4, GPU=0.5),
        _demand(8, "STRICT_PACK", CPU=1),
        _demand(3, "STRICT_SPREAD", CPU=4),
        _demand(1000),
    ],
)
def test_what_fits_is_let_through(demand: Demand) -> None:
    assert find_obstacle([demand], MACHINES) is None


@pytest.mark.parametrize(
    ("demand", "said"),
    [
        (_demand(17, CPU=1), "16 of 17 replicas of policy can be placed"),
        (_demand(3, CPU=8), "1 of 3 replicas"),  # 16 CPUs in all, but only one node has 8
        (_demand(1, GPU=2), "0 of 1 replicas"),  # 2 GPUs in all, one a node
        (_demand(9, "STRICT_PACK", CPU=1), "8 of 9 replicas of policy can be placed on one node"),
        (_demand(4, "STRICT_SPREAD", CPU=1), "3 of 4 replicas of policy can be placed on a node of its own"),
        (_demand(1, tape=1), "0 of 1 replicas"),
    ],
)
def test_what_fits_on_no_node_is_an_obstacle_though_the_total_would_do(demand: Demand, said: str) -> None:
    assert said in str(find_obstacle([demand], MACHINES))


def test_demands_of_several_nodes_are_added_up() -> None:
    demands = [_demand(10, CPU=1), Demand(("value",), 10, {"CPU": 1}, None)]
    assert find_obstacle(demands, MACHINES) == "20 CPU are asked for in all, and there are 16"


def test_fractions_do_not_add_up_to_a_refusal() -> None:
    assert find_obstacle([_demand(10, GPU=0.1)], [{"GPU": 1.0}]) is None


def test_a_refusal_says_what_was_asked_and_what_there_is_node_by_node() -> None:
    machines = [Machine("10.0.0.1", {"CPU": 4, "memory": 1e9}, {"CPU": 1}), Machine("10.0.0.2", {}, {})]
    text = say_refusal("1 of 2 replicas can be placed", [_demand(2, "SPREAD", CPU=2)], machines)
    assert "2 x policy with 2 CPU, SPREAD" in text
    assert "10.0.0.1: CPU 1 of 4 free\n" in text
    assert "10.0.0.2: nothing" in text
