"""Programs run without workers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

import flowsched as fs
from flowsched.programs import Costs, simulate
from flowsched.programs.check import find_violations
from tests.programs.plans import PAIR, SEED, seed_plan
from tests.programs.test_programs_properties import Lowered, lowered


def slept(plan: fs.Plan) -> Costs:
    """Return the costs of the seed's graph: 0.1 + 0.05 b seconds for policy, 0.02 + 0.04 b for the others."""

    def call(number: int) -> float:
        rows = int(plan.table.stop[number] - plan.table.start[number])
        return 0.1 + 0.05 * rows if plan.table.node[number] == 0 else 0.02 + 0.04 * rows

    return Costs(call=call)


def test_the_seeds_graph_with_a_rank_a_replica_takes_as_long_as_arithmetic_says() -> None:
    plan = seed_plan()
    for rendezvous in (False, True):
        done = simulate(plan.programs(rendezvous=rendezvous), slept(plan))
        assert done.seconds == pytest.approx(0.8)
        assert sum(done.busy) == pytest.approx(4 * 0.3 + 24 * 0.1)
        assert done.busy[0] == pytest.approx(0.6)
        assert done.busy[26] == 0


def test_on_one_rank_calls_run_one_after_the_other() -> None:
    plan = seed_plan()
    assert simulate(plan.programs(1, home=0), slept(plan)).seconds == pytest.approx(4 * 0.3 + 24 * 0.1)


def test_messages_take_their_way_and_ranks_their_time_for_them() -> None:
    plan = fs.compile(fs.Graph("one", sources=["x"], nodes=[fs.Node("a", inputs=["x"])]), 3)
    programs = plan.programs()
    costs = Costs(call=lambda _: 1.0, message=lambda message: 0.1 * message.stop, action=0.01)
    # Home sends while the rank posts; three rows under way; the call; the rank sends; three rows under way.
    assert simulate(programs, costs).seconds == pytest.approx(0.01 + 0.3 + 1.0 + 0.01 + 0.3)
    assert simulate(programs, costs, capacity=0).seconds == pytest.approx(0.01 + 0.3 + 1.0 + 0.01 + 0.3)


def test_a_call_starts_when_the_last_of_what_it_reads_has_arrived() -> None:
    plan = fs.compile(PAIR, 6)
    slow = Costs(call=lambda number: [1.0, 5.0, 0.0, 0.0, 0.0, 0.0][number])
    done = simulate(plan.programs(), slow)
    assert [done.ended[number] for number in range(6)] == [1.0, 5.0, 1.0, 5.0, 5.0, 5.0]


def test_less_room_between_ranks_never_makes_a_step_faster() -> None:
    plan = fs.compile(SEED, 61)
    programs = plan.programs(3, home=0, rendezvous=True)
    seconds = [simulate(programs, slept(plan), capacity=capacity).seconds for capacity in (None, 4, 1, 0)]
    assert seconds == sorted(seconds)


@settings(max_examples=80, deadline=None)
@given(lowered())
def test_the_checker_finds_a_circle_exactly_where_ranks_stop(made: Lowered) -> None:
    found = {problem.code for problem in find_violations(made.programs, made.plan, rendezvous=True)}
    stopped = simulate(made.programs, capacity=0).stopped
    assert found == ({"cycle"} if stopped else set())


def test_a_thousand_replicas_come_to_their_end() -> None:
    nodes = [
        fs.Node("policy", inputs=["prompts"], replicas=256, batch_size=4),
        fs.Node("reward", inputs=["policy"], replicas=768, batch_size=2),
    ]
    plan = fs.compile(fs.Graph("wide", sources=["prompts"], nodes=nodes), 8_192)
    done = simulate(plan.programs(), Costs(call=lambda _: 0.01))
    assert done.stopped == {}
    assert len(done.ended) == plan.table.calls
    assert done.seconds >= 0.01 * (8_192 / 256 / 4)
