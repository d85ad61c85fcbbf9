"""Every way in which programs can fail is caught under its own name."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowsched as fs
from flowsched.errors import CheckError
from flowsched.programs import Placement, Programs, check_programs, simulate
from flowsched.programs.check import find_violations
from tests.programs.editing import (
    RECV,
    RUN,
    SEND,
    codes,
    rows,
    swapped,
    with_messages,
    with_rows,
    without,
    written,
)
from tests.programs.plans import AFTER, PAIR, seed_plan


@pytest.fixture
def plan() -> fs.Plan:
    """Two nodes of two replicas each; each replica of the second reads of both of the first."""
    return fs.compile(PAIR, 6)


@pytest.fixture
def programs(plan: fs.Plan) -> Programs:
    """Its programs of two ranks, with home on rank 0."""
    return plan.programs(2, home=0)


def cell(programs: Programs, column: str, at: int, value: Any) -> Programs:
    """Return the programs with one cell of a column of their messages replaced."""
    changed = getattr(programs.messages, column).copy()
    changed[at] = value
    return with_messages(programs, **{column: changed})


def without_message(programs: Programs, number: int) -> Programs:
    """Return the programs without a message, as if it had never been thought of."""
    messages = programs.messages
    kept = np.arange(len(messages)) != number
    readers = np.diff(messages.reader_offsets)
    columns: dict[str, Any] = {
        name: getattr(messages, name)[kept]
        for name in ("sender", "receiver", "producer", "start", "stop", "is_output")
    }
    columns["reader"] = messages.reader[np.repeat(kept, readers)]
    columns["reader_offsets"] = np.concatenate([[0], np.cumsum(readers[kept])])
    changed = [
        [
            (kind, at if kind == RUN or at < number else at - 1)
            for kind, at in own
            if kind == RUN or at != number
        ]
        for own in rows(programs)
    ]
    return with_messages(with_rows(programs, changed), **columns)


def with_message(programs: Programs, like: int, **cells: Any) -> Programs:
    """Return the programs with one more message, sent and received right after the one that it is like."""
    messages = programs.messages
    names = ("sender", "receiver", "producer", "start", "stop", "is_output")
    columns = {name: np.append(getattr(messages, name), getattr(messages, name)[like]) for name in names}
    for name in cells.keys() & columns.keys():
        columns[name][-1] = cells[name]
    readers = cells.get("readers", messages[like].readers)
    columns["reader"] = np.append(messages.reader, readers).astype(np.int64)
    columns["reader_offsets"] = np.append(messages.reader_offsets, messages.reader_offsets[-1] + len(readers))
    number = len(messages)
    changed = [
        [
            new
            for kind, at in own
            for new in ([(kind, at), (kind, number)] if (kind != RUN and at == like) else [(kind, at)])
        ]
        for own in rows(programs)
    ]
    return with_messages(with_rows(programs, changed), **columns)


def only_problem(programs: Programs, plan: fs.Plan, **options: Any) -> str:
    """Return the one problem there is, in its full text."""
    problems = find_violations(programs, plan, **options)
    assert len(problems) == 1, [str(problem) for problem in problems]
    return str(problems[0])


def test_a_send_that_is_missing_is_named_with_its_rows_and_ranks(plan: fs.Plan, programs: Programs) -> None:
    assert only_problem(without(programs, SEND, 2), plan) == (
        "[unmatched-receive] message 2 (a.1.0[4:5] to rank 0 for b.0.1, sent by rank 1): "
        "it is received, and never sent. Send it"
    )


def test_a_receive_that_is_missing_is_caught(plan: fs.Plan, programs: Programs) -> None:
    assert "[unmatched-send] message 2" in only_problem(without(programs, RECV, 2), plan)


def test_a_message_that_nobody_sends_or_receives_is_caught(plan: fs.Plan, programs: Programs) -> None:
    assert codes(without(without(programs, RECV, 2), SEND, 2), plan) == {"missing-message"}


def test_a_call_that_is_missing_is_named_with_its_rank(plan: fs.Plan, programs: Programs) -> None:
    problem = only_problem(without(programs, RUN, 4), plan)
    assert (
        problem
        == "[missing-call] call b.0.1[4:5]: no rank runs it. Run it on rank 0, which serves its replica"
    )


def test_calls_of_a_replica_out_of_its_queue_are_caught(plan: fs.Plan, programs: Programs) -> None:
    own = rows(programs)[0]
    changed = swapped(programs, 0, own.index((RUN, 2)), own.index((RUN, 4)))
    problems = {problem.code: str(problem) for problem in find_violations(changed, plan)}
    assert problems["wrong-queue"] == (
        "[wrong-queue] rank 0, action 3 (RUN b.0.1[4:5]): the queue of its replica has b.0.0[0:2] before it. "
        "Run b.0.0[0:2] first"
    )


def test_two_receives_of_one_sender_in_each_others_place_are_named(plan: fs.Plan, programs: Programs) -> None:
    own = rows(programs)[0]
    first, second = own.index((RECV, 2)), own.index((RECV, 3))
    problem = only_problem(swapped(programs, 0, first, second), plan)
    assert problem.startswith("[wrong-order] rank 0, action")
    assert "message 2 (a.1.0[4:5] to rank 0 for b.0.1, sent by rank 1) is sent before it" in problem


def test_rows_that_no_message_brings_are_named(plan: fs.Plan, programs: Programs) -> None:
    problem = only_problem(without_message(programs, 2), plan)
    assert problem.startswith("[missing-rows] rank 0, action 5 (RUN b.0.1[4:5])"), problem
    assert "no message brings it own rows [1:2] of a.1.0[3:6]" in problem


def test_rows_of_a_source_that_no_message_brings_are_named(plan: fs.Plan, programs: Programs) -> None:
    assert "no message brings it x[3:6]" in only_problem(without_message(programs, 0), plan)


@pytest.mark.parametrize(("column", "value"), [("start", 0), ("stop", 3)])
def test_a_message_with_other_rows_than_its_reader_reads_is_caught(
    plan: fs.Plan, programs: Programs, column: str, value: int
) -> None:
    assert codes(cell(programs, column, 2, value), plan) == {"missing-rows", "surplus-rows"}


def test_a_message_of_another_producer_is_caught(plan: fs.Plan, programs: Programs) -> None:
    assert "surplus-rows" in codes(cell(programs, "producer", 0, 1), plan) | codes(
        cell(programs, "producer", 2, 3), plan
    )


def test_rows_that_come_twice_are_caught(plan: fs.Plan, programs: Programs) -> None:
    assert codes(with_message(programs, like=2), plan) == {"repeated-rows"}


def test_rows_that_nobody_reads_are_caught(plan: fs.Plan, programs: Programs) -> None:
    assert codes(with_message(programs, like=2, start=0, readers=()), plan) == {"unread-message"}


def test_an_output_that_does_not_come_home_is_caught(plan: fs.Plan, programs: Programs) -> None:
    problem = only_problem(without_message(programs, 3), plan)
    assert problem.startswith("[missing-output] rank 1, action")
    assert "no message brings all that it makes home" in problem


def test_an_output_that_comes_home_in_part_or_twice_is_caught(plan: fs.Plan, programs: Programs) -> None:
    assert "missing-output" in codes(cell(programs, "stop", 3, 1), plan)
    assert codes(with_message(programs, like=3), plan) == {"unread-message"}


def test_a_node_that_is_no_output_sent_home_as_one_is_caught(plan: fs.Plan, programs: Programs) -> None:
    assert codes(cell(programs, "is_output", 2, True), plan) == {"unread-message"}


def test_a_reader_on_another_rank_is_caught(plan: fs.Plan, programs: Programs) -> None:
    assert "wrong-rank" in codes(cell(programs, "reader", 1, 4), plan)


def test_a_message_from_a_rank_that_does_not_have_its_rows_is_caught(
    plan: fs.Plan, programs: Programs
) -> None:
    assert codes(cell(programs, "sender", 2, 0), plan) == {"wrong-rank"}


def test_rows_that_another_rank_claims_to_have_are_caught(plan: fs.Plan) -> None:
    programs = plan.programs(2)
    changed = rows(programs)
    changed[2].remove((SEND, 1))
    changed[0].append((SEND, 1))
    problem = only_problem(cell(with_rows(programs, changed), "sender", 1, 0), plan)
    assert problem.startswith("[wrong-rank] rank 0, action")
    assert "is sent by rank 0, and it should be home. Let home do it" in problem


def test_a_message_from_a_rank_to_itself_is_caught(plan: fs.Plan) -> None:
    programs = plan.programs(1, home=0)
    alone = fs.compile(PAIR, 6).programs(2, home=0)
    columns = {
        name: getattr(alone.messages, name)[1:2]
        for name in ("sender", "receiver", "producer", "start", "stop", "is_output")
    } | {"reader": np.array([3]), "reader_offsets": np.array([0, 1])}
    changed = [[*rows(programs)[0][:2], (SEND, 0), (RECV, 0), *rows(programs)[0][2:]]]
    within = with_messages(with_rows(programs, changed), **columns | {"receiver": np.array([0], np.int32)})
    assert "its sender is its receiver" in only_problem(within, plan)


def test_a_call_that_does_not_wait_for_the_end_of_the_node_before_it_is_caught() -> None:
    plan = fs.compile(AFTER, 4)
    programs = plan.programs(2)
    signal = next(message.number for message in programs.messages if message.is_signal)
    problem = only_problem(without_message(programs, signal), plan)
    assert problem.startswith("[missing-end] rank 1, action")
    assert "no message brings it the end of train.0.1[2:3]" in problem


def test_a_signal_of_a_call_that_is_not_the_last_is_caught() -> None:
    plan = fs.compile(AFTER, 4)
    programs = plan.programs(2)
    signal = next(message for message in programs.messages if message.is_signal)
    earlier = next(
        call for call in plan["train"].numbers if call != signal.producer and plan.table.replica[call] == 0
    )
    assert codes(cell(programs, "producer", signal.number, earlier), plan) == {"missing-end", "surplus-rows"}


def test_a_call_run_before_the_end_of_the_node_before_it_on_its_own_rank_is_caught() -> None:
    plan = fs.compile(AFTER, 2)
    programs = plan.programs(1, home=0)
    order = [number for _, number in rows(programs)[0]]
    changed = with_rows(programs, [[(RUN, number) for number in reversed(order)]])
    assert codes(changed, plan) == {"missing-end"}


def test_rows_read_before_they_are_made_on_the_same_rank_are_caught(plan: fs.Plan) -> None:
    programs = plan.programs(1, home=0)
    consumers_first = sorted(rows(programs)[0], key=lambda row: -plan.table.node[row[1]])
    problem = only_problem(with_rows(programs, [consumers_first]), plan)
    assert "it needs a.0.0[0:3], which its rank runs after it (and 4 more needs)" in problem
    assert problem.startswith("[missing-rows] rank 0, action 0 (RUN b.0.0[0:2])")


def test_a_circle_of_ranks_is_told_rank_by_rank() -> None:
    nodes = [
        fs.Node("a", inputs=["x"]),
        fs.Node("b", inputs=["a"]),
        fs.Node("c", inputs=["x"]),
        fs.Node("d", inputs=["c"]),
    ]
    plan = fs.compile(fs.Graph("crossed", sources=["x"], nodes=nodes), 2)
    programs = plan.programs(placement=Placement(2, 2, {"a": (0,), "d": (0,), "b": (1,), "c": (1,)}))
    check_programs(programs, plan)
    circle = written(
        programs,
        """
        RECV x[0:2] from home for a.0.0
        RECV c.0.0[0:2] from rank 1 for d.0.0
        RUN  d.0.0[0:2]
        SEND d.0.0[0:2] to home for output
        RUN  a.0.0[0:2]
        SEND a.0.0[0:2] to rank 1 for b.0.0
        """,
        """
        RECV x[0:2] from home for c.0.0
        RECV a.0.0[0:2] from rank 0 for b.0.0
        RUN  b.0.0[0:2]
        SEND b.0.0[0:2] to home for output
        RUN  c.0.0[0:2]
        SEND c.0.0[0:2] to rank 0 for d.0.0
        """,
        str(programs[2]),
    )
    assert only_problem(circle, plan) == (
        "[cycle] rank 0, action 2 (RUN d.0.0[0:2]): ranks wait for each other: "
        "rank 0 stands at RUN d.0.0[0:2] and waits for rank 1; "
        "rank 1 stands at RUN b.0.0[0:2] and waits for rank 0. "
        "Keep the actions of all ranks in one order of the plan's calls"
    )
    assert simulate(circle).stopped.keys() == {0, 1}


def test_an_order_that_is_safe_only_where_sends_do_not_wait_is_refused_under_rendezvous() -> None:
    plan = seed_plan()
    programs = plan.programs(4)
    check_programs(programs, plan)
    problem = only_problem(programs, plan, rendezvous=True)
    assert problem.startswith("[cycle] ")
    assert "plan.programs(rendezvous=True)" in problem
    assert simulate(programs, capacity=0).stopped != {}
    check_programs(plan.programs(4, rendezvous=True), plan)


@pytest.mark.parametrize(
    ("column", "changed"),
    [
        ("offsets", lambda column: column[:-1]),
        ("offsets", lambda column: column[::-1].copy()),
        ("kinds", lambda column: column + 2),
        ("numbers", lambda column: column + 100),
        ("numbers", lambda column: column - 1),
        ("numbers", lambda column: column[1:]),
    ],
)
def test_columns_that_cannot_be_read_are_reported_and_nothing_else(
    plan: fs.Plan, programs: Programs, column: str, changed: Any
) -> None:
    damaged = replace(programs, **{column: changed(getattr(programs, column))})
    assert codes(damaged, plan) == {"columns"}


@pytest.mark.parametrize("column", ["sender", "receiver", "producer", "reader", "reader_offsets"])
def test_messages_out_of_range_are_reported_and_nothing_else(
    plan: fs.Plan, programs: Programs, column: str
) -> None:
    for value in (-9, 10_000):
        assert codes(cell(programs, column, 1, value), plan) == {"columns"}


def test_programs_of_another_graph_are_refused(programs: Programs) -> None:
    with pytest.raises(CheckError, match=r"programs of graph 'ppo' for 16 samples on 2 ranks has"):
        check_programs(programs, seed_plan())


def test_programs_of_another_number_of_samples_are_refused(programs: Programs) -> None:
    assert codes(programs, fs.compile(PAIR, 7)) != set()
    assert codes(fs.compile(PAIR, 7).programs(2, home=0), fs.compile(PAIR, 6)) != set()


def test_what_is_wrong_is_counted_and_told_once(plan: fs.Plan, programs: Programs) -> None:
    changed = without(without(programs, SEND, 2), SEND, 3)
    assert "never sent (and 1 more message)" in only_problem(changed, plan)


def test_the_checker_of_programs_imports_nothing_that_makes_them() -> None:
    files = list((Path(fs.__file__).parent / "programs" / "check").glob("*.py"))
    assert len(files) > 5
    allowed = {"messages", "placement", "programs", "errors"}
    for file in files:
        for line in ast.walk(ast.parse(file.read_text())):
            module = line.module or "" if isinstance(line, ast.ImportFrom) else ""
            if module.startswith("flowsched.programs") and not module.startswith("flowsched.programs.check"):
                assert module.removeprefix("flowsched.programs.") in allowed, f"{file.name} imports {module}"
