"""Which rank serves which replica."""

from __future__ import annotations

import pickle
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowsched as fs
from flowsched.programs import Placement, PlacementError
from tests.programs.plans import SEED, seed_plan


def blamed(error: pytest.ExceptionInfo[PlacementError]) -> list[tuple[str, str]]:
    """Return code and place of each problem."""
    return [(problem.code, problem.place) for problem in error.value.problems]


@settings(deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.integers(1, 60))
def test_replicas_are_spread_evenly_over_ranks_and_so_are_those_of_each_node(
    replicas: list[int], ranks: int
) -> None:
    nodes = [fs.Node(f"n{at}", inputs=["x"], replicas=count) for at, count in enumerate(replicas)]
    placement = Placement.spread(fs.Graph("wide", sources=["x"], nodes=nodes), ranks)
    for placed in [
        *placement.replicas.values(),
        [rank for own in placement.replicas.values() for rank in own],
    ]:
        loads = Counter(placed)
        assert max(loads.values()) - min(loads[rank] for rank in range(ranks)) <= 1
    assert len(placement.idle) == max(ranks - sum(replicas), 0)


def test_without_a_number_of_ranks_each_replica_has_its_own_and_home_is_apart() -> None:
    placement = Placement.spread(SEED)
    assert (placement.ranks, placement.home, placement.processes) == (26, 26, 27)
    assert placement.home_is_apart
    assert sorted(rank for own in placement.replicas.values() for rank in own) == list(range(26))


def test_nodes_that_share_replicas_stand_where_these_are() -> None:
    nodes = [
        fs.Node("policy", inputs=["x"], replicas=2),
        fs.Node("logprob", inputs=["policy"], replicas_of="policy", method="logprob"),
    ]
    plan = fs.compile(fs.Graph("shared", sources=["x"], nodes=nodes), 6)
    programs = plan.programs()
    assert dict(programs.placement.replicas) == {"policy": (0, 1)}
    assert [str(action) for action in programs[1].actions] == [
        "RECV x[3:6] from home for policy.1.0",
        "RUN  policy.1.0[3:6]",
        "RUN  logprob.1.1[3:6]",
        "SEND logprob.1.1[3:6] to home for output",
    ]


def test_a_placement_says_which_replicas_are_on_a_rank_and_which_ranks_are_idle() -> None:
    placement = Placement(3, 3, {"a": (0, 0, 2), "b": (2,)})
    assert placement.served_by(2) == {"a": (2,), "b": (0,)}
    assert placement.idle == (1,)
    assert str(placement).splitlines() == [
        "3 ranks, 1 idle, home apart",
        "  rank  replicas",
        "  0     a.0, a.1",
        "  1     - (idle)",
        "  2     a.2, b.0",
        "  home  -",
    ]


def test_placements_compare_hash_and_travel() -> None:
    one, other = Placement.spread(SEED, 4, home=0), Placement.spread(SEED, 4, home=0)
    assert one == other == pickle.loads(pickle.dumps(one))
    assert hash(one) == hash(other)
    assert one != Placement.spread(SEED, 4)


@pytest.mark.parametrize("ranks", [0, -1, True, 2.0, "4", 2_000_000_000])
def test_a_number_of_ranks_that_is_none_is_refused(ranks: int) -> None:
    with pytest.raises(PlacementError) as error:
        Placement.spread(SEED, ranks)
    assert blamed(error) == [("bad-ranks", "ranks")]


@pytest.mark.parametrize("home", [-1, 5, False, "0"])
def test_a_home_that_is_no_rank_is_refused(home: int) -> None:
    with pytest.raises(PlacementError, match=r"0 to 3, or 4") as error:
        seed_plan().programs(4, home=home)
    assert blamed(error) == [("bad-home", "home")]


def test_every_rank_out_of_range_is_reported_with_its_replica() -> None:
    with pytest.raises(PlacementError) as error:
        Placement(2, 0, {"a": (0, 2), "b": (-1,), "c": "01", "d": (0.5,)})  # type: ignore[dict-item]
    assert blamed(error) == [
        ("bad-rank", "node 'a'"),
        ("bad-rank", "node 'b'"),
        ("wrong-type", "node 'c'"),
        ("bad-rank", "node 'd'"),
    ]
    assert "its replica 1 is on rank 2, and there are 2 ranks" in str(error.value)


def test_replicas_that_are_no_mapping_are_refused() -> None:
    with pytest.raises(PlacementError) as error:
        Placement(2, 0, [(0, 1)])  # type: ignore[arg-type]
    assert blamed(error) == [("wrong-type", "replicas")]


def test_a_placement_of_another_graph_is_refused_with_all_that_differs() -> None:
    placement = Placement(2, 0, {"policy": (0, 1), "reference": (0,) * 7, "rewards": (0,)})
    with pytest.raises(PlacementError, match="Did you mean 'reward'") as error:
        seed_plan().programs(placement=placement)
    assert blamed(error) == [
        ("wrong-replicas", "node 'reference'"),
        ("missing-node", "node 'value'"),
        ("missing-node", "node 'reward'"),
        ("surplus-node", "node 'rewards'"),
    ]


def test_a_placement_of_a_node_that_has_the_replicas_of_another_is_refused() -> None:
    nodes = [fs.Node("a", inputs=["x"]), fs.Node("b", inputs=["a"], replicas_of="a")]
    plan = fs.compile(fs.Graph("shared", sources=["x"], nodes=nodes), 1)
    with pytest.raises(PlacementError, match="served by the replicas of 'a'"):
        plan.programs(placement=Placement(1, 0, {"a": (0,), "b": (0,)}))


@pytest.mark.parametrize(("ranks", "home", "place"), [(4, None, "ranks"), (None, 0, "home")])
def test_ranks_beside_a_placement_are_refused(ranks: int | None, home: int | None, place: str) -> None:
    with pytest.raises(PlacementError) as error:
        seed_plan().programs(ranks, home=home, placement=Placement.spread(SEED, 4))
    assert blamed(error) == [("given-twice", place)]
