"""The passes of the planner, one after the other: validate, share, cut, route, order."""

from __future__ import annotations

import numpy as np
import pytest

import flowsched as fs
from flowsched.errors import PlanError
from flowsched.planner.cut import cut_calls
from flowsched.planner.share import Share, share_units
from flowsched.planner.validate import validate_sizes


def one(**options: int | None) -> fs.Graph:
    """Return a graph with one node 'm'."""
    return fs.Graph("one", sources=["x"], nodes=[fs.Node("m", inputs=["x"], **options)])  # type: ignore[arg-type]


def dealt(units: int, *, replicas: int, batch_size: int | None = None, group: int = 1) -> list[str]:
    """Return the calls into which units of one node are cut, as ``replica.wave[start:stop]``."""
    graph = one(replicas=replicas, batch_size=batch_size, group=group)
    calls = cut_calls(graph, [share_units(units, replicas)])
    columns = (column.tolist() for column in (calls.replica, calls.wave, calls.start, calls.stop))
    return [f"{replica}.{wave}[{start}:{stop}]" for replica, wave, start, stop in zip(*columns, strict=True)]


def lines(plan: fs.Plan, node: str) -> list[str]:
    """Return the calls of a node in call notation."""
    return str(plan[node]).splitlines()


# The seed's case


def test_the_seeds_case_comes_out_as_the_report_asks() -> None:
    later = ["reference", "value", "reward"]
    graph = fs.Graph(
        "ppo",
        sources=["prompts"],
        nodes=[
            fs.Node("policy", inputs=["prompts"], replicas=2, batch_size=4),
            fs.Node("reference", inputs=["policy"], replicas=8, batch_size=2),
            fs.Node("value", inputs=["policy"], replicas=8, batch_size=2),
            fs.Node("reward", inputs=["policy", "reference"], replicas=8, batch_size=2),
        ],
    )
    plan = fs.compile(graph, samples=16)
    assert str(plan["policy"]).splitlines() == [
        "policy.0.0[0:4] <- prompts[0:4]",
        "policy.1.0[4:8] <- prompts[4:8]",
        "policy.0.1[8:12] <- prompts[8:12]",
        "policy.1.1[12:16] <- prompts[12:16]",
    ]
    assert str(plan["reward"]).splitlines()[:3] == [
        "reward.0.0[0:2] <- policy.0.0[0:2], reference.0.0[0:2]",
        "reward.1.0[2:4] <- policy.0.0[2:4], reference.1.0[2:4]",
        "reward.2.0[4:6] <- policy.1.0[4:6], reference.2.0[4:6]",
    ]
    for name in later:
        calls = list(plan[name])
        assert [call.replica for call in calls] == list(range(8)), "no replica is idle"
        assert [call.stop - call.start for call in calls] == [2] * 8
        assert all(len(feed.fragments) == 1 for call in calls for feed in call.feeds)


# Validate


@pytest.mark.parametrize("samples", [-1, 1.5, True, "16", None])
def test_a_number_of_samples_that_is_none_is_refused(samples: object) -> None:
    with pytest.raises(PlanError, match="bad-samples"):
        fs.compile(one(), samples)  # type: ignore[arg-type]


def test_inputs_whose_sizes_cannot_meet_are_refused_with_both_names_and_sizes() -> None:
    nodes = [
        fs.Node("gen", inputs=["x"], expand=3),
        fs.Node("pairs", inputs=["x"], expand=2),
        fs.Node("join", inputs=["gen", "pairs"]),
    ]
    with pytest.raises(PlanError) as caught:
        validate_sizes(fs.Graph("meet", sources=["x"], nodes=nodes), 10)
    assert "'gen' with 30 rows" in str(caught.value)
    assert "'pairs' with 20 rows" in str(caught.value)


def test_rows_that_are_no_whole_number_of_groups_are_refused_with_both_numbers() -> None:
    with pytest.raises(PlanError, match="10 rows are no whole number of groups of 4"):
        fs.compile(one(group=4), 10)


def test_rows_that_do_not_collapse_evenly_are_refused() -> None:
    nodes = [fs.Node("gen", inputs=["x"], expand=4), fs.Node("best", inputs=["gen"], collapse=3)]
    with pytest.raises(PlanError, match="collapses 3 rows into one"):
        fs.compile(fs.Graph("best", sources=["x"], nodes=nodes), 3)


def test_groups_that_would_straddle_samples_are_refused_though_the_rows_divide() -> None:
    nodes = [fs.Node("gen", inputs=["x"], expand=4), fs.Node("norm", inputs=["gen"], group=3)]
    with pytest.raises(PlanError, match="keeps 3 rows in one call, but reads 60 rows"):
        fs.compile(fs.Graph("grpo", sources=["x"], nodes=nodes), 15)


def test_groups_of_several_whole_samples_will_do() -> None:
    nodes = [fs.Node("gen", inputs=["x"], expand=4), fs.Node("norm", inputs=["gen"], group=8, batch_size=8)]
    plan = fs.compile(fs.Graph("grpo", sources=["x"], nodes=nodes), 16)
    assert [(call.start, call.stop) for call in plan["norm"]] == [(at, at + 8) for at in range(0, 64, 8)]


def test_siblings_of_two_expansions_do_not_meet_though_their_sizes_divide() -> None:
    nodes = [
        fs.Node("four", inputs=["x"], expand=4),
        fs.Node("two", inputs=["x"], expand=2),
        fs.Node("join", inputs=["four", "two"]),
    ]
    with pytest.raises(PlanError, match="cannot meet row by row"):
        fs.compile(fs.Graph("siblings", sources=["x"], nodes=nodes), 10)


# Share


def test_loads_differ_by_at_most_one_and_the_first_replicas_have_more() -> None:
    assert share_units(69, 8) == Share(units=8, larger=5, smaller=3)


def test_a_share_that_divides_gives_all_replicas_the_same() -> None:
    assert share_units(16, 8) == Share(units=2, larger=0, smaller=8)


def test_fewer_units_than_replicas_give_one_each_and_leave_the_rest_idle() -> None:
    share = share_units(3, 7)
    assert share == Share(units=1, larger=0, smaller=3)
    assert share.used == 3


def test_nothing_to_share_uses_no_replica() -> None:
    assert share_units(0, 4).used == 0


# Cut


def test_rows_are_dealt_wave_by_wave() -> None:
    expected = ["0.0[0:2]", "1.0[2:4]", "0.1[4:6]", "1.1[6:8]", "0.2[8:9]", "1.2[9:10]"]
    assert dealt(10, replicas=2, batch_size=2) == expected


def test_a_replica_with_more_rows_may_have_one_call_more() -> None:
    assert dealt(5, replicas=2, batch_size=2) == ["0.0[0:2]", "1.0[2:4]", "0.1[4:5]"]


def test_calls_of_a_share_differ_by_at_most_one_and_the_larger_ones_come_first() -> None:
    assert dealt(10, replicas=1, batch_size=4) == ["0.0[0:4]", "0.1[4:7]", "0.2[7:10]"]


def test_no_batch_size_gives_each_replica_one_call() -> None:
    assert dealt(7, replicas=2) == ["0.0[0:4]", "1.0[4:7]"]


def test_groups_stay_whole_in_loads_and_calls() -> None:
    expected = ["0.0[0:8]", "1.0[8:16]", "2.0[16:24]", "0.1[24:32]", "1.1[32:40]"]
    assert dealt(5, replicas=3, batch_size=12, group=8) == expected


def test_no_rows_give_no_calls() -> None:
    assert dealt(0, replicas=4, batch_size=3) == []


# Route


def test_a_call_reads_a_fragment_of_every_producer_call_that_it_overlaps() -> None:
    nodes = [fs.Node("a", inputs=["x"], replicas=4), fs.Node("b", inputs=["a"], replicas=2, batch_size=3)]
    plan = fs.compile(fs.Graph("overlap", sources=["x"], nodes=nodes), samples=10)
    assert [f"{call.name}[{call.start}:{call.stop}]" for call in plan["a"]] == [
        "a.0.0[0:3]",
        "a.1.0[3:6]",
        "a.2.0[6:8]",
        "a.3.0[8:10]",
    ]
    assert lines(plan, "b") == [
        "b.0.0[0:3] <- a.0.0[0:3]",
        "b.1.0[3:6] <- a.1.0[3:6]",
        "b.0.1[6:8] <- a.2.0[6:8]",
        "b.1.1[8:10] <- a.3.0[8:10]",
    ]


def test_one_call_reads_all_calls_of_a_producer_with_more_replicas() -> None:
    nodes = [fs.Node("a", inputs=["x"], replicas=3), fs.Node("b", inputs=["a"])]
    plan = fs.compile(fs.Graph("gather", sources=["x"], nodes=nodes), samples=4)
    assert lines(plan, "b") == ["b.0.0[0:4] <- a.0.0[0:2] + a.1.0[2:3] + a.2.0[3:4]"]


def test_a_call_reads_all_its_inputs_at_the_same_rows() -> None:
    nodes = [
        fs.Node("two", inputs=["x"], replicas=2),
        fs.Node("three", inputs=["x"], replicas=3),
        fs.Node("join", inputs=["two", "three", "x"], batch_size=2),
    ]
    plan = fs.compile(fs.Graph("join", sources=["x"], nodes=nodes), samples=5)
    assert lines(plan, "join") == [
        "join.0.0[0:2] <- two.0.0[0:2], three.0.0[0:2], x[0:2]",
        "join.0.1[2:4] <- two.0.0[2:3] + two.1.0[3:4], three.1.0[2:4], x[2:4]",
        "join.0.2[4:5] <- two.1.0[4:5], three.2.0[4:5], x[4:5]",
    ]


def test_rows_that_share_a_row_of_an_input_read_it_once() -> None:
    nodes = [
        fs.Node("gen", inputs=["x"], expand=4),
        fs.Node("baseline", inputs=["x"], replicas=2),
        fs.Node("advantage", inputs=["gen", "baseline"], batch_size=3),
    ]
    plan = fs.compile(fs.Graph("grpo", sources=["x"], nodes=nodes), samples=2)
    assert lines(plan, "advantage") == [
        "advantage.0.0[0:3] <- gen.0.0[0:3], baseline.0.0[0:1] * 4",
        "advantage.0.1[3:6] <- gen.0.0[3:6], (baseline.0.0[0:1] + baseline.1.0[1:2]) * 4",
        "advantage.0.2[6:8] <- gen.0.0[6:8], baseline.1.0[1:2] * 4",
    ]


def test_rows_that_collapse_into_one_are_read_by_one_call() -> None:
    nodes = [
        fs.Node("gen", inputs=["x"], expand=3, replicas=2),
        fs.Node("best", inputs=["gen"], collapse=3, batch_size=4),
        fs.Node("join", inputs=["x", "best"]),
    ]
    plan = fs.compile(fs.Graph("best", sources=["x"], nodes=nodes), samples=2)
    assert lines(plan, "best") == ["best.0.0[0:1] <- gen.0.0[0:3]", "best.0.1[1:2] <- gen.1.0[3:6]"]
    assert lines(plan, "join") == ["join.0.0[0:2] <- x[0:2], best.0.0[0:1] + best.0.1[1:2]"]


# Order


def in_sequence(plan: fs.Plan) -> list[str]:
    """Return the names of all calls in the order of the sequence."""
    names = [call.name for node in plan for call in node]
    return [names[number] for number in np.argsort(plan.table.sequence)]


def test_early_samples_flow_through_the_whole_graph_first() -> None:
    nodes = [fs.Node("a", inputs=["x"], batch_size=1), fs.Node("b", inputs=["a"], batch_size=1)]
    plan = fs.compile(fs.Graph("chain", sources=["x"], nodes=nodes), samples=3)
    assert in_sequence(plan) == ["a.0.0", "b.0.0", "a.0.1", "b.0.1", "a.0.2", "b.0.2"]


def test_a_replica_that_serves_two_nodes_works_them_off_one_after_the_other() -> None:
    nodes = [
        fs.Node("score", inputs=["gen"], replicas_of="gen", batch_size=1),
        fs.Node("gen", inputs=["x"], replicas=2, batch_size=1),
    ]
    plan = fs.compile(fs.Graph("shared", sources=["x"], nodes=nodes), samples=4)
    assert [call.name for call in plan["gen"]] == ["gen.0.0", "gen.1.0", "gen.0.1", "gen.1.1"]
    assert [call.name for call in plan["score"]] == ["score.0.2", "score.1.2", "score.0.3", "score.1.3"]


def test_calls_of_a_node_come_after_all_calls_of_those_it_waits_for() -> None:
    nodes = [
        fs.Node("sync", inputs=["x"], after=["train"], batch_size=2),
        fs.Node("train", inputs=["x"], batch_size=1),
    ]
    plan = fs.compile(fs.Graph("after", sources=["x"], nodes=nodes), samples=4)
    assert in_sequence(plan) == ["train.0.0", "train.0.1", "train.0.2", "train.0.3", "sync.0.0", "sync.0.1"]


def test_nodes_may_be_declared_in_any_order() -> None:
    nodes = [fs.Node("b", inputs=["a"], batch_size=1), fs.Node("a", inputs=["x"], batch_size=1)]
    plan = fs.compile(fs.Graph("chain", sources=["x"], nodes=nodes), samples=2)
    assert in_sequence(plan) == ["a.0.0", "b.0.0", "a.0.1", "b.0.1"]
    assert [node.name for node in plan] == ["b", "a"]


def test_no_samples_give_a_plan_without_calls() -> None:
    plan = fs.compile(one(replicas=3, batch_size=2), 0)
    assert plan.table.calls == plan.table.fragments == 0
    assert plan.table.feed.tolist() == [0]
    fs.check(plan)
