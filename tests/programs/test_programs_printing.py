"""What is shown of programs."""

from __future__ import annotations

import flowsched as fs
from tests.programs.plans import PAIR, SEED, seed_plan


def test_small_programs_are_shown_in_full() -> None:
    programs = fs.compile(PAIR, 3).programs(2, home=0)
    text = str(programs)
    heading, sizes, *_ = text.splitlines()
    assert heading == f"pair: programs of 2 ranks, none idle, home on rank 0 (plan {programs.plan.hash[:12]})"
    assert (
        sizes
        == "  3 samples, 4 calls, 2 messages; in an order for sends that do not wait for their receivers"
    )
    blocks = text.split("\n\n")
    assert blocks[1].splitlines() == [
        "  rank      receives  runs  sends  replicas",
        "  0 (home)         1     2      1  a.0, b.0",
        "  1                1     2      1  a.1, b.1",
    ]
    assert [block.splitlines()[0] for block in blocks[2:]] == ["  rank 0:", "  rank 1:"]
    for block, program in zip(blocks[2:], programs, strict=True):
        assert [line.removeprefix("    ") for line in block.splitlines()[1:]] == str(program).splitlines()


def test_of_large_programs_ranks_are_counted_and_no_line_grows_long() -> None:
    programs = fs.compile(SEED, 1_000).programs(200, rendezvous=True)
    lines = str(programs).splitlines()
    assert max(map(len, lines)) <= 110
    assert len(lines) < 45
    assert "174 idle" in lines[0]
    assert "(rendezvous)" in lines[1]
    assert "  ... 169 more" in lines
    assert lines[-1] == "  More: print(programs[0])"


def test_a_rank_with_very_many_replicas_keeps_to_its_line() -> None:
    assert max(map(len, str(seed_plan().programs(1, home=0).placement).splitlines())) <= 110


def test_programs_and_their_parts_say_in_one_line_what_they_are() -> None:
    programs = seed_plan().programs(4)
    assert repr(programs) == "<Programs ppo: 4 ranks, 26 messages, 80 actions>"
    assert repr(programs[4]) == "<RankProgram home: 20 actions>"
    assert repr(programs.messages) == "<Messages: 26 between ranks>"
    assert [program.rank for program in programs[1:3]] == [1, 2]
    assert len(programs) == 5
