"""Any plan, on any ranks, becomes programs that pass their checker; any damage to them does not."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

import flowsched as fs
from flowsched import Plan
from flowsched.programs import ActionKind, Placement, Programs, check_programs, parse_action, simulate
from tests.programs.editing import RECV, RUN, SEND, codes, places, rows, swapped, twice, with_rows, without
from tests.strategies import Workload, graphs

SMALL = graphs(max_nodes=6, max_samples=60, max_rows=300, max_replicas=7, max_batch_size=12)


def assert_all_calls_run(programs: Programs) -> None:
    """Every rank comes to its end, with as little room between ranks as the programs say they need."""
    for capacity in (0, 1, 3, None) if programs.rendezvous else (None,):
        done = simulate(programs, capacity=capacity)
        assert done.stopped == {}
        assert len(done.ended) == programs.plan.table.calls


class Lowered(NamedTuple):
    """A plan and its programs."""

    plan: Plan
    programs: Programs


@st.composite
def placements(draw: DrawFn, graph: fs.Graph) -> Placement:
    """Ranks from one to more than there are replicas; dealt in turn, or anyhow; home apart or one of them."""
    ranks = draw(st.integers(1, sum(node.replicas for node in graph.owners()) + 2), label="ranks")
    home = draw(st.just(ranks) | st.integers(0, ranks), label="home")
    if draw(st.booleans(), label="dealt in turn"):
        return Placement.spread(graph, ranks, home=home)
    rank = st.integers(0, ranks - 1)
    replicas = {
        node.name: tuple(draw(st.lists(rank, min_size=node.replicas, max_size=node.replicas)))
        for node in graph.owners()
    }
    return Placement(ranks, home, replicas)


@st.composite
def lowered(draw: DrawFn) -> Lowered:
    """Any small plan, on any ranks, in either order."""
    work = draw(SMALL)
    plan = fs.compile(work.graph, work.samples)
    placement = draw(placements(work.graph))
    return Lowered(
        plan, plan.programs(placement=placement, rendezvous=draw(st.booleans(), label="rendezvous"))
    )


@settings(max_examples=200, deadline=None)
@given(lowered())
def test_programs_of_any_plan_on_any_ranks_pass_and_run_to_their_ends(made: Lowered) -> None:
    check_programs(made.programs, made.plan)
    assert_all_calls_run(made.programs)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(graphs(), st.data())
def test_programs_of_large_plans_pass_and_run_to_their_ends(work: Workload, data: st.DataObject) -> None:
    plan = fs.compile(work.graph, work.samples)
    placement = data.draw(placements(work.graph), label="placement")
    for rendezvous in (False, True):
        programs = plan.programs(placement=placement, rendezvous=rendezvous)
        check_programs(programs, plan)
        assert_all_calls_run(programs)


@settings(max_examples=60, deadline=None)
@given(lowered())
def test_programs_that_are_safe_under_rendezvous_are_safe_where_sends_do_not_wait(made: Lowered) -> None:
    assume(made.programs.rendezvous)
    check_programs(made.programs, made.plan, rendezvous=False)


@settings(max_examples=60, deadline=None)
@given(lowered())
def test_every_action_parses_back_from_its_line(made: Lowered) -> None:
    for program in made.programs:
        assert [parse_action(str(action)) for action in program.actions] == list(program.actions)


@settings(max_examples=60, deadline=None)
@given(lowered())
def test_rows_go_once_to_each_rank_that_reads_them_and_never_to_their_own(made: Lowered) -> None:
    messages = list(made.programs.messages)
    keys = [(each.producer, each.start, each.stop, each.receiver) for each in messages]
    assert len(set(keys)) == len(keys)
    assert all(each.sender != each.receiver for each in messages)
    assert [each.number for each in messages] == list(range(len(messages)))


@settings(max_examples=60, deadline=None)
@given(lowered(), st.data())
def test_an_action_that_is_missing_is_caught(made: Lowered, data: st.DataObject) -> None:
    _, _, kind, number = _any_action(made.programs, data)
    code = {RECV: "unmatched-send", RUN: "missing-call", SEND: "unmatched-receive"}[ActionKind(kind)]
    assert code in codes(without(made.programs, ActionKind(kind), number), made.plan)


@settings(max_examples=60, deadline=None)
@given(lowered(), st.data())
def test_an_action_that_stands_twice_is_caught(made: Lowered, data: st.DataObject) -> None:
    _, _, kind, number = _any_action(made.programs, data)
    code = "repeated-call" if kind == RUN else "repeated-message"
    assert code in codes(twice(made.programs, ActionKind(kind), number), made.plan)


@settings(max_examples=60, deadline=None)
@given(lowered(), st.data())
def test_an_action_on_another_rank_is_caught(made: Lowered, data: st.DataObject) -> None:
    assume(len(made.programs) > 1)
    rank, place, _, _ = _any_action(made.programs, data)
    other = data.draw(st.integers(0, len(made.programs) - 1).filter(lambda other: other != rank), label="to")
    changed = rows(made.programs)
    changed[other].append(changed[rank].pop(place))
    assert "wrong-rank" in codes(with_rows(made.programs, changed), made.plan)


@settings(max_examples=60, deadline=None)
@given(lowered(), st.data())
def test_a_call_that_runs_before_what_it_reads_is_received_is_caught(
    made: Lowered, data: st.DataObject
) -> None:
    read = [message for message in made.programs.messages if message.readers]
    assume(read)
    message = data.draw(st.sampled_from(read), label="message")
    changed = rows(made.programs)
    own = changed[message.receiver]
    own.remove((RECV, message.number))
    own.insert(own.index((RUN, message.readers[0])) + 1, (RECV, message.number))
    assert "late-receive" in codes(with_rows(made.programs, changed), made.plan)


@settings(max_examples=60, deadline=None)
@given(lowered(), st.data())
def test_two_receives_of_one_sender_in_each_others_place_are_caught(
    made: Lowered, data: st.DataObject
) -> None:
    sender = made.programs.messages.sender
    received: dict[tuple[int, int], list[int]] = {}
    for rank, place, kind, number in places(made.programs):
        if kind == RECV:
            received.setdefault((rank, int(sender[number])), []).append(place)
    several = {pair: found for pair, found in received.items() if len(found) > 1}
    assume(several)
    rank, other = data.draw(st.sampled_from(sorted(several)), label="receiver and sender")
    chosen = data.draw(
        st.lists(st.sampled_from(several[rank, other]), min_size=2, max_size=2, unique=True), label="places"
    )
    assert "wrong-order" in codes(swapped(made.programs, rank, *chosen), made.plan)


@settings(max_examples=60, deadline=None)
@given(lowered(), st.data())
def test_rows_that_are_sent_before_they_are_made_are_caught(made: Lowered, data: st.DataObject) -> None:
    sent = [message for message in made.programs.messages if message.producer >= 0]
    assume(sent)
    message = data.draw(st.sampled_from(sent), label="message")
    changed = rows(made.programs)
    own = changed[message.sender]
    own.remove((SEND, message.number))
    own.insert(own.index((RUN, message.producer)), (SEND, message.number))
    assert "early-send" in codes(with_rows(made.programs, changed), made.plan)


@settings(max_examples=200, deadline=None)
@given(lowered(), st.data())
def test_any_two_actions_in_each_others_place_are_caught_or_do_no_harm(
    made: Lowered, data: st.DataObject
) -> None:
    long = [rank for rank, own in enumerate(rows(made.programs)) if len(own) > 1]
    assume(long)
    rank = data.draw(st.sampled_from(long), label="rank")
    place = st.integers(0, len(made.programs[rank]) - 1)
    changed = swapped(made.programs, rank, data.draw(place, label="first"), data.draw(place, label="second"))
    found = codes(changed, made.plan)
    if not found:
        assert_all_calls_run(changed)


def _any_action(programs: Programs, data: st.DataObject) -> tuple[int, int, int, int]:
    every = list(places(programs))
    assume(every)
    return data.draw(st.sampled_from(every), label="rank, place, kind and number")
