"""The checker finds every kind of damage to what calls read and when they run, and says where it is."""

from __future__ import annotations

import pytest

import flowsched as fs
from flowsched.check import find_violations
from tests.planner.editing import blamed, codes, notation, number_of, recolumned, rewritten, with_cell

JOIN = fs.compile(
    fs.Graph(
        "join",
        sources=["prompts", "images"],
        nodes=[
            fs.Node("left", inputs=["prompts"], replicas=2),
            fs.Node("right", inputs=["images"], replicas=3),
            fs.Node("both", inputs=["left", "right"], replicas=2),
        ],
    ),
    samples=6,
)
ANSWERS = fs.compile(
    fs.Graph(
        "answers",
        sources=["prompts"],
        nodes=[
            fs.Node("policy", inputs=["prompts"], replicas=2, expand=4),
            fs.Node("baseline", inputs=["prompts"]),
            fs.Node("advantage", inputs=["policy", "baseline"], replicas=3, batch_size=2),
        ],
    ),
    samples=2,
)
SHARED = fs.compile(
    fs.Graph(
        "shared",
        sources=["prompts"],
        nodes=[
            fs.Node("policy", inputs=["prompts"], replicas=2, batch_size=2),
            fs.Node("logprob", inputs=["policy"], replicas_of="policy"),
            fs.Node("sync", inputs=["prompts"], after=["logprob"]),
        ],
    ),
    samples=8,
)


def test_the_plans_that_the_tests_damage_read_as_they_expect() -> None:
    assert notation(JOIN).splitlines() == [
        "left.0.0[0:3] <- prompts[0:3]",
        "left.1.0[3:6] <- prompts[3:6]",
        "right.0.0[0:2] <- images[0:2]",
        "right.1.0[2:4] <- images[2:4]",
        "right.2.0[4:6] <- images[4:6]",
        "both.0.0[0:3] <- left.0.0[0:3], right.0.0[0:2] + right.1.0[2:3]",
        "both.1.0[3:6] <- left.1.0[3:6], right.1.0[3:4] + right.2.0[4:6]",
    ]
    assert notation(ANSWERS).splitlines() == [
        "policy.0.0[0:4] <- prompts[0:1]",
        "policy.1.0[4:8] <- prompts[1:2]",
        "baseline.0.0[0:2] <- prompts[0:2]",
        "advantage.0.0[0:2] <- policy.0.0[0:2], baseline.0.0[0:1] * 4",
        "advantage.1.0[2:4] <- policy.0.0[2:4], baseline.0.0[0:1] * 4",
        "advantage.2.0[4:6] <- policy.1.0[4:6], baseline.0.0[1:2] * 4",
        "advantage.0.1[6:7] <- policy.1.0[6:7], baseline.0.0[1:2] * 4",
        "advantage.1.1[7:8] <- policy.1.0[7:8], baseline.0.0[1:2] * 4",
    ]
    assert notation(SHARED).splitlines() == [
        "policy.0.0[0:2] <- prompts[0:2]",
        "policy.1.0[2:4] <- prompts[2:4]",
        "policy.0.1[4:6] <- prompts[4:6]",
        "policy.1.1[6:8] <- prompts[6:8]",
        "logprob.0.2[0:4] <- policy.0.0[0:2] + policy.1.0[2:4]",
        "logprob.1.2[4:8] <- policy.0.1[4:6] + policy.1.1[6:8]",
        "sync.0.0[0:8] <- prompts[0:8]",
    ]
    for plan in (JOIN, ANSWERS, SHARED):
        assert find_violations(plan) == []
        assert codes(rewritten(plan)) <= {"determinism"}  # of the sequence, which is that of the lines


def test_a_shifted_fragment_is_reported() -> None:
    plan = rewritten(JOIN, ("<- images[2:4]", "<- images[1:3]"))
    said = blamed(plan, "alignment")
    assert "node 'right', call right.1.0[2:4]" in said
    assert "it should read rows 2 to 4 (exclusive) of 'images', but reads 1 to 3" in said
    assert codes(plan) == {"alignment"}


@pytest.mark.parametrize("rows", ["right.0.0[0:1]", "right.0.0[0:3]"], ids=["a gap", "an overlap"])
def test_fragments_that_do_not_follow_on_another_are_reported(rows: str) -> None:
    plan = rewritten(JOIN, ("right.0.0[0:2] + ", f"{rows} + "))
    said = blamed(plan, "alignment")
    assert "node 'both', call both.0.0[0:3]" in said
    assert f"right.1.0[2:3] should begin at row {rows[-2]}" in said


def test_fragments_in_the_wrong_order_are_reported() -> None:
    plan = rewritten(JOIN, ("right.0.0[0:2] + right.1.0[2:3]", "right.1.0[2:3] + right.0.0[0:2]"))
    problems = [problem for problem in find_violations(plan) if problem.code == "alignment"]
    assert {problem.place for problem in problems} == {"node 'both', call both.0.0[0:3]"}
    assert any("right.0.0[0:2] should begin at row 3" in problem.message for problem in problems)


def test_a_fragment_without_rows_is_reported() -> None:
    plan = rewritten(JOIN, ("right.0.0[0:2] + ", "right.0.0[0:2] + right.1.0[2:2] + "))
    assert "right.1.0[2:2] should begin at row 2 and hold rows" in blamed(plan, "alignment")


def test_the_row_of_another_prompt_is_reported() -> None:
    plan = rewritten(
        ANSWERS,
        ("[2:4] <- policy.0.0[2:4], baseline.0.0[0:1]", "[2:4] <- policy.0.0[2:4], baseline.0.0[1:2]"),
    )
    said = blamed(plan, "alignment")
    assert "node 'advantage', call advantage.1.0[2:4]" in said
    assert "it should read rows 0 to 1 (exclusive) of 'baseline', but reads 1 to 2" in said


def test_inputs_whose_rows_cannot_meet_are_reported() -> None:
    nodes = [
        fs.Node("a", inputs=["x"], expand=4),
        fs.Node("b", inputs=["x"], expand=3),
        fs.Node("c", inputs=["a", "b"]),
    ]
    plan = fs.Plan(fs.Graph("meet", sources=["x"], nodes=nodes), 1, JOIN.table)
    assert "node 'c': its 4 rows cannot share the 3 rows of 'b' evenly" in blamed(plan, "alignment")


def test_an_input_without_fragments_is_reported() -> None:
    feed = JOIN.table.feed.copy()
    feed[6] = feed[5]  # the feed of the first call of 'both' from 'left' is empty
    said = blamed(recolumned(JOIN, feed=feed), "alignment")
    assert "node 'both', call both.0.0[0:3]: it has 0 fragments of 'left'" in said


def test_offsets_of_feeds_that_fall_are_reported() -> None:
    said = blamed(with_cell(JOIN, "feed", 7, 2), "alignment")
    assert "node 'both', call both.0.0[0:3]: it has -4 fragments of 'right'" in said


def test_offsets_of_feeds_that_are_too_few_are_reported() -> None:
    plan = recolumned(JOIN, feed=JOIN.table.feed[:-1])
    assert "column 'feed': it has 9 offsets, but 9 inputs of calls need 10" in blamed(plan, "table")


def test_offsets_of_feeds_that_leave_fragments_over_are_reported() -> None:
    assert "column 'feed': it goes from 1 to 11" in blamed(with_cell(JOIN, "feed", 0, 1), "table")
    assert "column 'feed': it goes from 0 to 10" in blamed(with_cell(JOIN, "feed", 9, 10), "table")


def test_a_column_of_fragments_that_is_too_long_is_reported() -> None:
    plan = recolumned(JOIN, fragment_stop=JOIN.table.feed[:12].repeat(2)[:12])
    assert "column 'fragment_stop': it has 12 fragments, but 'producer' has 11" in blamed(plan, "table")


def test_inputs_that_changed_places_are_reported() -> None:
    plan = rewritten(
        JOIN,
        (
            "left.1.0[3:6], right.1.0[3:4] + right.2.0[4:6]",
            "right.1.0[3:4] + right.2.0[4:6], left.1.0[3:6]",
        ),
    )
    said = blamed(plan, "fragments")
    assert "node 'both', call both.1.0[3:6]: its input 'left' has the fragment right.1.0[3:4]" in said
    assert codes(plan) == {"fragments"}


def test_producers_that_changed_places_are_reported() -> None:
    plan = rewritten(JOIN, ("right.0.0[0:2] + right.1.0[2:3]", "right.1.0[0:2] + right.0.0[2:3]"))
    said = blamed(plan, "fragments")
    assert "node 'both', call both.0.0[0:3]: it reads right.1.0[0:2], which makes rows 2 to 4" in said


def test_a_fragment_beyond_the_rows_of_its_producer_is_reported() -> None:
    plan = rewritten(JOIN, ("right.1.0[3:4] + right.2.0[4:6]", "right.1.0[3:6]"))
    said = blamed(plan, "fragments")
    assert "node 'both', call both.1.0[3:6]: it reads right.1.0[3:6], which makes rows 2 to 4" in said


def test_another_source_is_reported() -> None:
    plan = rewritten(JOIN, ("<- images[0:2]", "<- prompts[0:2]"))
    said = blamed(plan, "fragments")
    assert "node 'right', call right.0.0[0:2]: its input 'images' has the fragment prompts[0:2]" in said


@pytest.mark.parametrize("number", [-3, 7, -(2**63), 2**63 - 1])
def test_a_producer_that_does_not_exist_is_reported(number: int) -> None:
    plan = with_cell(JOIN, "producer", int(JOIN.table.feed[5]), number)
    assert f"the fragment producer {number}[0:3]" in blamed(plan, "fragments")


def test_a_fragment_in_two_pieces_is_reported() -> None:
    plan = rewritten(JOIN, ("<- left.0.0[0:3]", "<- left.0.0[0:1] + left.0.0[1:3]"))
    said = blamed(plan, "fragments")
    assert "node 'both', call both.0.0[0:3]: left.0.0[0:1] and left.0.0[1:3] come from one producer" in said


def test_a_position_that_two_calls_share_is_reported() -> None:
    plan = with_cell(SHARED, "position", number_of(SHARED, "logprob.1.2"), 1)
    said = blamed(plan, "queue")
    assert "node 'logprob', call logprob.1.1[4:8]: its position 1 is also that of policy.1.1[6:8]" in said


def test_a_gap_in_a_replicas_queue_is_reported() -> None:
    plan = with_cell(SHARED, "position", number_of(SHARED, "logprob.1.2"), 3)
    said = blamed(plan, "queue")
    assert "node 'logprob', call logprob.1.3[4:8]: its replica has 3 calls, so that no position is 3" in said


def test_replicas_that_would_wait_for_each_other_in_a_circle_are_reported_in_any_sequence() -> None:
    circle = rewritten(
        SHARED,
        ("policy.1.1[6:8] <-", "policy.1.2[6:8] <-"),
        (" + policy.1.1[6:8]", " + policy.1.2[6:8]"),
        ("logprob.1.2", "logprob.1.1"),  # runs before the call of its own replica that it reads
    )
    said = blamed(circle, "no-deadlock")
    assert "node 'policy', call policy.1.2[6:8]" in said
    assert "its replica first runs logprob.1.1[4:8], at place 5" in said
    said = blamed(_swapped(circle, "policy.1.2", "logprob.1.1"), "no-deadlock")
    assert "node 'logprob', call logprob.1.1[4:8]" in said
    assert "but reads policy.1.2[6:8], made at place 5" in said


def test_a_sequence_that_contradicts_a_queue_is_reported() -> None:
    plan = _swapped(SHARED, "policy.0.0", "policy.0.1")
    problems = find_violations(plan)
    assert {problem.code for problem in problems} == {"no-deadlock"}
    assert "node 'policy', call policy.0.1[4:6]" in problems[0].place
    assert "its replica first runs policy.0.0[0:2]" in problems[0].message


def test_a_sequence_in_which_a_call_comes_before_what_it_reads_is_reported() -> None:
    plan = _swapped(JOIN, "right.2.0", "both.1.0")
    said = blamed(plan, "no-deadlock")
    assert "node 'both', call both.1.0[3:6]" in said
    assert "reads right.2.0[4:6], made at place" in said


def test_a_sequence_that_breaks_an_after_is_reported() -> None:
    plan = _swapped(SHARED, "logprob.1.2", "sync.0.0")
    said = blamed(plan, "no-deadlock")
    assert "node 'sync', call sync.0.0[0:8]" in said
    assert "but after='logprob' has logprob.1.2[4:8] at place" in said


@pytest.mark.parametrize("place", [0, -1, 7])
def test_a_sequence_that_is_no_permutation_is_reported(place: int) -> None:
    plan = with_cell(SHARED, "sequence", 6, place)
    assert f"it has place {place} in the sequence" in blamed(plan, "no-deadlock")


def _swapped(plan: fs.Plan, call: str, other: str) -> fs.Plan:
    """Return the plan with the places of two calls in the sequence exchanged."""
    first, second = number_of(plan, call), number_of(plan, other)
    sequence = plan.table.sequence.copy()
    sequence[[first, second]] = sequence[[second, first]]
    return recolumned(plan, sequence=sequence)
