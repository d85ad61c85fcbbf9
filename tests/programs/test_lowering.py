"""What a plan becomes: receives, runs and sends of each rank, in their order."""

from __future__ import annotations

import pickle

import numpy as np

import flowsched as fs
from flowsched.programs import Message, Placement, check_programs
from tests.programs.plans import AFTER, PAIR, seed_plan


def lines(program: object) -> list[str]:
    """Return the lines that a program prints."""
    return str(program).splitlines()


def test_the_programs_of_a_pair_with_home_on_rank_0() -> None:
    programs = fs.compile(PAIR, 6).programs(2, home=0)
    assert lines(programs[0]) == [
        "SEND x[3:6] to rank 1 for a.1.0",
        "RUN  a.0.0[0:3]",
        "SEND a.0.0[2:3] to rank 1 for b.1.0",
        "RUN  b.0.0[0:2]",
        "RECV a.1.0[4:5] from rank 1 for b.0.1",
        "RECV b.1.0[2:4] from rank 1 for output",
        "RUN  b.0.1[4:5]",
        "RECV b.1.1[5:6] from rank 1 for output",
    ]
    assert lines(programs[1]) == [
        "RECV x[3:6] from rank 0 for a.1.0",
        "RUN  a.1.0[3:6]",
        "SEND a.1.0[4:5] to rank 0 for b.0.1",
        "RECV a.0.0[2:3] from rank 0 for b.1.0",
        "RUN  b.1.0[2:4]",
        "SEND b.1.0[2:4] to rank 0 for output",
        "RUN  b.1.1[5:6]",
        "SEND b.1.1[5:6] to rank 0 for output",
    ]


def test_under_rendezvous_both_ranks_keep_messages_where_their_rows_are_made() -> None:
    programs = fs.compile(PAIR, 6).programs(2, home=0, rendezvous=True)
    assert lines(programs[1]) == [
        "RECV x[3:6] from rank 0 for a.1.0",
        "RECV a.0.0[2:3] from rank 0 for b.1.0",
        "RUN  a.1.0[3:6]",
        "SEND a.1.0[4:5] to rank 0 for b.0.1",
        "RUN  b.1.0[2:4]",
        "SEND b.1.0[2:4] to rank 0 for output",
        "RUN  b.1.1[5:6]",
        "SEND b.1.1[5:6] to rank 0 for output",
    ]


def test_messages_count_rows_from_the_first_that_their_producer_makes() -> None:
    messages = fs.compile(PAIR, 6).programs(2, home=0).messages
    assert messages[0] == Message(0, 0, 1, -1, 3, 6, (1,), False)
    assert messages[1] == Message(1, 0, 1, 0, 2, 3, (3,), False)
    assert messages[2] == Message(2, 1, 0, 1, 1, 2, (4,), False)
    assert messages[3] == Message(3, 1, 0, 3, 0, 2, (), True)
    assert [each.number for each in messages[1:3]] == [1, 2]
    assert messages[-1].is_output


def test_calls_of_one_rank_that_read_the_same_rows_share_a_message() -> None:
    programs = seed_plan().programs(4)
    assert "SEND policy.1.0[4:6] to rank 0 for reference.2.0, value.2.0, reward.2.0" in lines(programs[1])
    assert len(programs.messages) == 26
    for call in programs.messages[-1].readers:
        assert programs.messages[-1].number in programs.messages.read_by(call)


def test_a_call_finds_the_messages_that_it_reads() -> None:
    programs = fs.compile(PAIR, 6).programs()
    for call in range(programs.plan.table.calls):
        expected = [message.number for message in programs.messages if call in message.readers]
        assert list(programs.messages.read_by(call)) == expected


def test_an_output_that_is_also_read_at_home_comes_there_once() -> None:
    nodes = [fs.Node("a", inputs=["x"]), fs.Node("b", inputs=["a"])]
    plan = fs.compile(fs.Graph("both", sources=["x"], nodes=nodes, outputs=["a", "b"]), 3)
    programs = plan.programs(placement=Placement(2, 1, {"a": (0,), "b": (1,)}))
    assert lines(programs[0]) == [
        "RECV x[0:3] from rank 1 for a.0.0",
        "RUN  a.0.0[0:3]",
        "SEND a.0.0[0:3] to rank 1 for b.0.0, output",
    ]
    check_programs(programs, plan)


def test_on_one_rank_that_is_home_nothing_is_sent() -> None:
    plan = seed_plan()
    programs = plan.programs(1, home=0)
    assert len(programs.messages) == 0
    assert [action.number for action in programs[0].actions] == np.argsort(plan.table.sequence).tolist()  # type: ignore[union-attr]


def test_the_end_of_a_node_is_sent_to_those_that_come_after_it() -> None:
    programs = fs.compile(AFTER, 4).programs(2)
    assert lines(programs[0]) == [
        "RECV x[0:1] from home for train.0.0, sync.0.0",
        "RUN  train.0.0[0:1]",
        "SEND train.0.0[0:1] to home for output",
        "RECV x[2:3] from home for train.0.1, sync.0.1",
        "RUN  train.0.1[2:3]",
        "SEND done train.0.1 to rank 1 for sync.1.0",
        "SEND train.0.1[2:3] to home for output",
        "RECV done train.1.1 from rank 1 for sync.0.0",
        "RUN  sync.0.0[0:1]",
        "SEND sync.0.0[0:1] to home for output",
        "RUN  sync.0.1[2:3]",
        "SEND sync.0.1[2:3] to home for output",
    ]
    signals = [message for message in programs.messages if message.is_signal]
    assert [(each.start, each.stop, each.sender, each.receiver) for each in signals] == [
        (0, 0, 0, 1),
        (0, 0, 1, 0),
    ]


def test_a_node_that_is_named_twice_in_after_is_waited_for_once() -> None:
    nodes = [fs.Node("a", inputs=["x"]), fs.Node("b", inputs=["x"], after=["a", "a"])]
    plan = fs.compile(fs.Graph("twice", sources=["x"], nodes=nodes), 2)
    programs = plan.programs()
    assert lines(programs[1])[1] == "RECV done a.0.0 from rank 0 for b.0.0"
    check_programs(programs, plan)


def test_ranks_without_replicas_and_steps_without_samples_have_empty_programs() -> None:
    plan = fs.compile(PAIR, 6)
    programs = plan.programs(7)
    assert [len(program) for program in programs][4:7] == [0, 0, 0]
    check_programs(programs, plan)
    empty = fs.compile(PAIR, 0)
    assert [len(program) for program in empty.programs(2)] == [0, 0, 0]
    check_programs(empty.programs(2), empty)


def test_a_graph_with_more_sources_than_calls_is_lowered() -> None:
    graph = fs.Graph("join", sources=["x", "y", "z"], nodes=[fs.Node("a", inputs=["z", "x"])])
    plan = fs.compile(graph, 2)
    programs = plan.programs()
    assert lines(programs[1]) == [
        "SEND x[0:2] to rank 0 for a.0.0",
        "SEND z[0:2] to rank 0 for a.0.0",
        "RECV a.0.0[0:2] from rank 0 for output",
    ]
    check_programs(programs, plan)


def test_the_same_plan_gives_the_same_programs_again_and_they_travel() -> None:
    plan = seed_plan()
    programs = plan.programs(3)
    for other in (plan.programs(3), pickle.loads(pickle.dumps(programs))):
        assert str(other) == str(programs)
        assert np.array_equal(other.numbers, programs.numbers)
    check_programs(pickle.loads(pickle.dumps(programs)), plan)


def test_the_columns_of_programs_cannot_be_written_to() -> None:
    programs = seed_plan().programs(3)
    for column in (programs.kinds, programs.numbers, programs[0].numbers, programs.messages.sender):
        assert not column.flags.writeable
