"""The checker finds every kind of damage to the calls of a node and says where it is."""

from __future__ import annotations

import numpy as np
import pytest

import flowsched as fs
from flowsched.check import find_violations
from flowsched.errors import CheckError
from tests.planner.editing import blamed, codes, notation, number_of, recolumned, rewritten, with_cell

PLAN = fs.compile(
    fs.Graph(
        "rollout",
        sources=["prompts"],
        nodes=[
            fs.Node("policy", inputs=["prompts"], replicas=2, batch_size=4),
            fs.Node("reward", inputs=["policy"], replicas=3, batch_size=4),
        ],
    ),
    samples=16,
)


def single(samples: int, replicas: int, batch_size: int | None = None, group: int = 1) -> fs.Plan:
    """Return the plan of a graph with one node 'm'."""
    node = fs.Node("m", inputs=["x"], replicas=replicas, batch_size=batch_size, group=group)
    return fs.compile(fs.Graph("single", sources=["x"], nodes=[node]), samples)


def test_the_plan_that_the_tests_damage_reads_as_they_expect() -> None:
    assert notation(PLAN).splitlines() == [
        "policy.0.0[0:4] <- prompts[0:4]",
        "policy.1.0[4:8] <- prompts[4:8]",
        "policy.0.1[8:12] <- prompts[8:12]",
        "policy.1.1[12:16] <- prompts[12:16]",
        "reward.0.0[0:3] <- policy.0.0[0:3]",
        "reward.1.0[3:6] <- policy.0.0[3:4] + policy.1.0[4:6]",
        "reward.2.0[6:9] <- policy.1.0[6:8] + policy.0.1[8:9]",
        "reward.0.1[9:12] <- policy.0.1[9:12]",
        "reward.1.1[12:14] <- policy.1.1[12:14]",
        "reward.2.1[14:16] <- policy.1.1[14:16]",
    ]
    assert find_violations(PLAN) == []
    assert codes(rewritten(PLAN)) == {"determinism"}  # of the sequence, which is that of the lines


def test_a_dropped_call_is_reported_as_rows_in_no_call() -> None:
    plan = rewritten(PLAN, ("\nreward.0.1[9:12] <- policy.0.1[9:12]", ""))
    said = blamed(plan, "exactly-once")
    assert "node 'reward', call reward.1.1[12:14]" in said
    assert "rows 9 to 12 (exclusive) are in no call" in said


def test_a_dropped_last_call_is_reported_as_rows_in_no_call() -> None:
    plan = rewritten(PLAN, ("\nreward.2.1[14:16] <- policy.1.1[14:16]", ""))
    assert "call reward.1.1[12:14]: it is the last, but rows 14 to 16" in blamed(plan, "exactly-once")


def test_a_node_without_calls_is_reported() -> None:
    plan = single(1, 1)
    empty = rewritten(plan, ("m.0.0[0:1] <- x[0:1]", ""))
    assert "node 'm': none of its 1 rows is in a call" in blamed(empty, "exactly-once")


def test_rows_in_two_calls_are_reported_as_repeated() -> None:
    plan = rewritten(PLAN, ("reward.0.1[9:12] <- policy.0.1[9:12]", "reward.0.1[8:12] <- policy.0.1[8:12]"))
    said = blamed(plan, "exactly-once")
    assert "call reward.0.1[8:12]" in said
    assert "rows 8 to 9 (exclusive) are in the calls before it too" in said


def test_rows_that_the_node_does_not_have_are_reported() -> None:
    plan = rewritten(single(6, 2), ("m.1.0[3:6] <- x[3:6]", "m.1.0[3:7] <- x[3:7]"))
    said = blamed(plan, "exactly-once")
    assert "call m.1.0[3:7]: it reads rows 3 to 7 (exclusive), but the node has rows 0 to 6" in said


def test_a_plan_made_for_fewer_samples_is_reported() -> None:
    plan = fs.Plan(PLAN.graph, 20, PLAN.table)
    problems = find_violations(plan)
    assert {problem.code for problem in problems} == {"exactly-once"}
    assert [problem.place.split(",")[0] for problem in problems] == ["node 'policy'", "node 'reward'"]


@pytest.mark.parametrize("samples", [-1, 2.0, True, None])
def test_a_number_of_samples_that_is_none_is_reported(samples: object) -> None:
    plan = fs.Plan(PLAN.graph, samples, PLAN.table)  # type: ignore[arg-type]
    assert f"samples: the plan is for {samples!r} samples" in blamed(plan, "table")


def test_an_empty_call_is_reported() -> None:
    plan = rewritten(single(6, 2, 3), ("m.0.0[0:3] <- x[0:3]", "m.0.0[0:3] <- x[0:3]\nm.0.1[3:3] <- x[3:3]"))
    assert "call m.0.1[3:3]: it reads rows 3 to 3 (exclusive), which is none" in blamed(plan, "saturation")


def test_an_idle_replica_is_reported() -> None:
    plan = rewritten(
        single(6, 3),
        ("m.0.0[0:2] <- x[0:2]", "m.0.0[0:3] <- x[0:3]"),
        ("\nm.1.0[2:4] <- x[2:4]", "\nm.1.0[3:6] <- x[3:6]"),
        ("\nm.2.0[4:6] <- x[4:6]", ""),
    )
    said = blamed(plan, "saturation")
    assert "node 'm': 1 of its 3 replicas are idle, the first of them replica 2" in said


def test_two_samples_on_one_replica_are_reported_where_another_is_idle() -> None:
    plan = rewritten(
        single(2, 3), ("m.0.0[0:1] <- x[0:1]", "m.0.0[0:2] <- x[0:2]"), ("\nm.1.0[1:2] <- x[1:2]", "")
    )
    assert "2 of its 3 replicas are idle, the first of them replica 1" in blamed(plan, "saturation")
    assert "balance" not in codes(plan)


def test_loads_that_differ_by_two_are_reported_as_unbalanced() -> None:
    plan = rewritten(
        single(8, 2),
        ("m.0.0[0:4] <- x[0:4]", "m.0.0[0:5] <- x[0:5]"),
        ("m.1.0[4:8] <- x[4:8]", "m.1.0[5:8] <- x[5:8]"),
    )
    assert "node 'm': replica 0 gets 5 rows, but replica 1 gets 3" in blamed(plan, "balance")
    assert codes(plan) == {"balance"}


def test_a_load_of_two_groups_more_is_reported_as_unbalanced() -> None:
    plan = rewritten(
        single(16, 2, group=4),
        ("m.0.0[0:8] <- x[0:8]", "m.0.0[0:12] <- x[0:12]"),
        ("m.1.0[8:16] <- x[8:16]", "m.1.0[12:16] <- x[12:16]"),
    )
    assert "replica 0 gets 12 rows, but replica 1 gets 4" in blamed(plan, "balance")


def test_a_call_above_the_batch_size_is_reported() -> None:
    plan = rewritten(
        single(10, 1, 5),
        ("m.0.0[0:5] <- x[0:5]", "m.0.0[0:6] <- x[0:6]"),
        ("[5:10] <- x[5:10]", "[6:10] <- x[6:10]"),
    )
    assert "call m.0.0[0:6]: it reads 6 rows, but batch_size is 5" in blamed(plan, "cap")


def test_more_calls_than_are_needed_are_reported() -> None:
    plan = rewritten(single(4, 1, 4), ("m.0.0[0:4] <- x[0:4]", "m.0.0[0:2] <- x[0:2]\nm.0.1[2:4] <- x[2:4]"))
    said = blamed(plan, "fewest-calls")
    assert "node 'm': replica 0 has 2 calls for 4 rows, where 1 will do with batch_size 4" in said


def test_a_share_cut_in_two_is_reported_where_no_batch_size_asks_for_it() -> None:
    plan = rewritten(single(4, 1), ("m.0.0[0:4] <- x[0:4]", "m.0.0[0:2] <- x[0:2]\nm.0.1[2:4] <- x[2:4]"))
    assert "where 1 will do with batch_size None" in blamed(plan, "fewest-calls")


def test_calls_of_one_replica_that_differ_by_two_are_reported() -> None:
    plan = rewritten(
        single(6, 1, 4),
        ("m.0.0[0:3] <- x[0:3]", "m.0.0[0:4] <- x[0:4]"),
        ("[3:6] <- x[3:6]", "[4:6] <- x[4:6]"),
    )
    assert "node 'm': the calls of replica 0 differ by 2 rows" in blamed(plan, "even-calls")
    assert codes(plan) == {"even-calls"}


def test_a_group_cut_apart_is_reported() -> None:
    plan = rewritten(
        single(8, 2, group=4),
        ("m.0.0[0:4] <- x[0:4]", "m.0.0[0:3] <- x[0:3]"),
        ("m.1.0[4:8] <- x[4:8]", "m.1.0[3:8] <- x[3:8]"),
    )
    said = blamed(plan, "group")
    assert "node 'm', call m.0.0[0:3]" in said
    assert "cuts a group of 4 apart (and 1 more call)" in said


def test_rows_that_are_no_whole_number_of_groups_are_reported() -> None:
    plan = fs.Plan(single(8, 2, group=4).graph, 9, single(8, 2, group=4).table)
    assert "node 'm': its 9 rows are no whole number of groups of 4" in blamed(plan, "group")


def test_calls_that_stand_out_of_row_order_are_reported() -> None:
    first, second = "policy.0.0[0:4] <- prompts[0:4]", "policy.1.0[4:8] <- prompts[4:8]"
    plan = rewritten(PLAN, (f"{first}\n{second}", f"{second}\n{first}"))
    said = blamed(plan, "order")
    assert "node 'policy', call policy.0.0[0:4]" in said
    assert "begins at row 0, but stands after a call that begins at row 4" in said
    assert "exactly-once" not in codes(plan)


def test_a_wrong_wave_number_is_reported() -> None:
    plan = with_cell(PLAN, "wave", number_of(PLAN, "policy.0.1"), 0)
    said = blamed(plan, "waves")
    assert "node 'policy', call policy.0.1[8:12]: it says wave 0, but 1 calls of its replica" in said


def test_rows_dealt_replica_by_replica_are_reported() -> None:
    plan = rewritten(
        PLAN,
        (
            "policy.1.0[4:8] <- prompts[4:8]\npolicy.0.1[8:12]",
            "policy.0.1[4:8] <- prompts[4:8]\npolicy.1.0[8:12]",
        ),
        ("policy.1.0[4:6]", "policy.0.1[4:6]"),
        ("policy.1.0[6:8] + policy.0.1[8:9]", "policy.0.1[6:8] + policy.1.0[8:9]"),
        ("<- policy.0.1[9:12]", "<- policy.1.0[9:12]"),
    )
    said = blamed(plan, "waves")
    assert "node 'policy', call policy.1.0[8:12]" in said
    assert "it is of wave 0, but reads later rows than policy.0.1[4:8] of wave 1" in said


def test_a_replica_that_runs_its_waves_backwards_is_reported() -> None:
    plan = single(8, 2, 2)
    first, last = number_of(plan, "m.0.0"), number_of(plan, "m.0.1")
    position, sequence = plan.table.position.copy(), plan.table.sequence.copy()
    position[[first, last]], sequence[[first, last]] = position[[last, first]], sequence[[last, first]]
    turned = recolumned(plan, position=position, sequence=sequence)
    assert "call m.0.0[4:6]: its replica runs it before m.0.1[0:2]" in blamed(turned, "waves")
    assert codes(turned) == {"waves"}


def test_a_replica_that_does_not_exist_is_reported() -> None:
    plan = with_cell(PLAN, "replica", number_of(PLAN, "reward.2.1"), 3)
    said = blamed(plan, "table")
    assert "node 'reward', call reward.3.1[14:16]: it is on replica 3, but there are 3" in said


def test_a_call_on_another_replica_than_its_turn_is_reported() -> None:
    plan = rewritten(single(2, 3), ("m.1.0[1:2]", "m.2.0[1:2]"))
    said = blamed(plan, "determinism")
    assert "call m.2.0[1:2]: it is on replica 2, but wave 0 has come to replica 1" in said


def test_a_larger_load_on_a_later_replica_is_reported() -> None:
    plan = rewritten(
        single(5, 2),
        ("m.0.0[0:3] <- x[0:3]", "m.0.0[0:2] <- x[0:2]"),
        ("m.1.0[3:5] <- x[3:5]", "m.1.0[2:5] <- x[2:5]"),
    )
    assert "node 'm': replica 1 gets 3 rows, more than the 2 of replica 0" in blamed(plan, "determinism")


def test_a_larger_call_after_a_smaller_one_is_reported() -> None:
    plan = rewritten(
        single(5, 1, 3),
        ("m.0.0[0:3] <- x[0:3]", "m.0.0[0:2] <- x[0:2]"),
        ("[3:5] <- x[3:5]", "[2:5] <- x[2:5]"),
    )
    assert "call m.0.1[2:5]: it reads 3 rows, more than the 2" in blamed(plan, "determinism")


def test_several_violations_are_reported_together_each_with_place_and_mend() -> None:
    plan = rewritten(
        PLAN, ("reward.1.1[12:14] <- policy.1.1[12:14]", "reward.1.0[12:15] <- policy.1.1[12:14]")
    )
    with pytest.raises(CheckError) as caught:
        fs.check(plan)
    assert {problem.code for problem in caught.value.problems} == {
        "exactly-once",
        "alignment",
        "queue",
        "waves",
    }
    assert all("node 'reward'" in problem.place for problem in caught.value.problems)
    assert str(caught.value).startswith("plan of graph 'rollout' for 16 samples has 4 problems:")
    assert "Let it begin at row 15" in str(caught.value)


def test_a_column_of_another_type_is_reported() -> None:
    plan = recolumned(PLAN, start=PLAN.table.start.astype(np.float64))
    assert "column 'start': it is float64 of shape (10,), not one row of int64" in blamed(plan, "table")


def test_a_column_of_two_dimensions_is_reported() -> None:
    plan = recolumned(PLAN, replica=PLAN.table.replica.reshape(5, 2))
    assert "column 'replica': it is int32 of shape (5, 2)" in blamed(plan, "table")


def test_a_column_that_is_no_array_is_reported() -> None:
    assert "column 'wave': it is a list" in blamed(recolumned(PLAN, wave=PLAN.table.wave.tolist()), "table")


def test_a_column_that_is_too_short_is_reported() -> None:
    plan = recolumned(PLAN, wave=PLAN.table.wave[:-1])
    assert "column 'wave': it has 9 calls, but 'node' has 10" in blamed(plan, "table")


def test_a_call_of_a_node_that_does_not_exist_is_reported() -> None:
    plan = with_cell(PLAN, "node", 9, 2)
    assert "call 9 of the table: it is of node 2, but the graph's 2 nodes are 0 to 1" in blamed(plan, "table")


def test_a_call_that_stands_among_those_of_another_node_is_reported() -> None:
    plan = with_cell(PLAN, "node", 2, 1)
    said = blamed(plan, "table")
    assert "node 'policy'" in said
    assert "it stands at 3, after a call of node 'reward'" in said


def test_a_call_given_to_another_node_is_reported_at_both() -> None:
    plan = with_cell(PLAN, "node", 3, 1)
    problems = [problem for problem in find_violations(plan) if problem.code in ("exactly-once", "order")]
    assert {(problem.code, problem.place.split(",")[0]) for problem in problems} == {
        ("exactly-once", "node 'policy'"),
        ("exactly-once", "node 'reward'"),
        ("order", "node 'reward'"),
    }
