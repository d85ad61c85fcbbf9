"""Calls print as one line that parses back."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowsched as fs
from flowsched.plan import Call, Feed, Fragment, parse_call, parse_calls
from flowsched.plan.notation import NotationError
from tests.planner.editing import notation, table_of
from tests.strategies import Workload, graphs


@settings(max_examples=100, deadline=None)
@given(graphs(max_samples=200, max_rows=800))
def test_every_call_of_a_plan_parses_back_as_it_was_printed(work: Workload) -> None:
    plan = fs.compile(work.graph, work.samples)
    calls = [call for node in plan for call in node]
    assert parse_calls(notation(plan)) == calls
    assert [parse_call(str(call)) for call in calls] == calls


@settings(max_examples=100, deadline=None)
@given(graphs(max_samples=200, max_rows=800))
def test_the_notation_of_a_plan_holds_all_of_its_table_but_the_sequence(work: Workload) -> None:
    plan = fs.compile(work.graph, work.samples)
    table = table_of(work.graph, parse_calls(notation(plan)))
    for name, column in plan.table.columns():
        if name != "sequence":
            assert getattr(table, name).tolist() == column.tolist(), name


def test_the_example_of_the_design_reads_as_node_replica_position_and_rows() -> None:
    call = parse_call("value.1.0[22:43] <- policy.0.2[22:24] + policy.0.3[24:32] + policy.1.3[32:43]")
    assert call == Call(
        node="value",
        replica=1,
        position=0,
        start=22,
        stop=43,
        feeds=(
            Feed(
                (
                    Fragment("policy.0.2", 22, 24),
                    Fragment("policy.0.3", 24, 32),
                    Fragment("policy.1.3", 32, 43),
                )
            ),
        ),
    )
    assert call.name == "value.1.0"


def test_inputs_are_divided_by_commas_and_a_shared_row_says_how_often() -> None:
    text = "advantage.1.0[2:4] <- policy.0.0[2:4], baseline.0.0[0:1] * 4"
    call = parse_call(text)
    assert [feed.times for feed in call.feeds] == [1, 4]
    assert str(call) == text


def test_a_source_stands_without_replica_and_position() -> None:
    assert parse_call("policy.0.0[0:4] <- prompts[0:4]").feeds[0].fragments[0].producer == "prompts"


def test_spaces_and_empty_lines_do_not_matter() -> None:
    text = "\n  a.0.0[0:1]<-x[0:1]+x[1:2],y[0:1]*2  \n\n b.0.0[0:1]   <-   a.0.0[0:1]\n"
    assert [str(call) for call in parse_calls(text)] == [
        "a.0.0[0:1] <- x[0:1] + x[1:2], y[0:1] * 2",
        "b.0.0[0:1] <- a.0.0[0:1]",
    ]


def test_names_with_dashes_and_digits_parse() -> None:
    call = parse_call("old-logp_2.10.3[5:9] <- ref-2.0.1[5:9]")
    assert (call.node, call.replica, call.position) == ("old-logp_2", 10, 3)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("reward.0.0[0:2]", "a call"),
        ("reward.0[0:2] <- policy.0.0[0:2]", "a call"),
        ("reward.0.0[0-2] <- policy.0.0[0:2]", "a call"),
        ("reward.0.0[0:2] <- ", "a fragment"),
        ("reward.0.0[0:2] <- policy.0[0:2]", "a fragment"),
        ("reward.0.0[0:2] <- policy.0.0[0:2] * many", "an input"),
        ("reward.0.0[0:2] <- policy.0.0[0:2] * 0", "an input"),
        ("reward.0.0[0:2] <- policy.0.0[0:2] * 2 * 3", "an input"),
        ("reward.0.0[0:2] <- (policy.0.0[0:2])", "a fragment"),
        ("reward.0.0[0:2] <- ((policy.0.0[0:2])) * 2", "a fragment"),
        ("reward.0.0[0:2] <- (policy.0.0[0:2] * 2", "a fragment"),
        ("reward.0.0[0:2] <- (a[0:1]) + (a[1:2]) * 2", "a fragment"),
        ("reward.0.0[0:2] <- () * 2", "a fragment"),
        (f"reward.0.0[0:{'9' * 5000}] <- policy.0.0[0:2]", "a call"),
        (f"reward.0.0[0:2] <- policy.0.0[0:2] * {'9' * 5000}", "an input"),
        ("reward.0.0[0:2] <- policy.0.0[0:2],", "a fragment"),
    ],
)
def test_text_that_is_no_call_is_refused_with_an_example(text: str, part: str) -> None:
    with pytest.raises(NotationError) as caught:
        parse_call(text)
    assert f"is not {part}. Write it like '" in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_an_example_of_a_call_is_one() -> None:
    with pytest.raises(NotationError) as caught:
        parse_call("reward")
    example = str(caught.value).split("Write it like ")[1].strip("'")
    assert str(parse_call(example)) == example


def test_several_fragments_that_are_shared_stand_in_parentheses() -> None:
    text = "advantage.0.1[8:16] <- (baseline.0.0[2:3] + baseline.1.0[3:4]) * 4"
    (feed,) = parse_call(text).feeds
    assert (len(feed.fragments), feed.times) == (2, 4)
    assert str(parse_call(text)) == text


def test_several_fragments_that_are_shared_without_parentheses_are_refused() -> None:
    with pytest.raises(NotationError, match=r"what is shared.*'\(baseline.*\) \* 4'"):
        parse_call("advantage.0.1[8:16] <- baseline.0.0[2:3] + baseline.1.0[3:4] * 4")


_PIECES = [
    "a.0.0[0:1]",
    "a[0:1]",
    " ",
    "<-",
    "+",
    ",",
    "*",
    "(",
    ")",
    "4",
    "[",
    ":",
    "]",
    ".",
    "0",
    "-",
    "a\n",
]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(_PIECES), max_size=14).map("".join))
def test_any_text_is_a_call_that_prints_and_parses_back_or_is_refused(text: str) -> None:
    try:
        call = parse_call(f"a.0.0[0:1] <- {text}")
    except NotationError:
        return
    assert parse_call(str(call)) == call


@pytest.mark.parametrize("piece", _PIECES)
@pytest.mark.timeout(30)  # where the time grew with the square of the length, it were minutes
def test_hostile_text_is_refused_in_time_that_grows_with_its_length(piece: str) -> None:
    with pytest.raises(NotationError) as caught:
        parse_calls(f"a.0.0[0:1] <- a{piece * 200_000}x")
    assert len(str(caught.value)) < 1_000
