"""Programs of a plan on the command line."""

from __future__ import annotations

import re

import pytest

import flowsched as fs
from flowsched.programs import parse_action
from tests.cli.command_line import Cli, joined


def test_plan_with_ranks_prints_what_printing_the_programs_prints(cli: Cli) -> None:
    plan = fs.compile(fs.load_graph("job.yaml"), samples=5)
    assert cli("plan", "job.yaml", "-n", 5, "--ranks", 2).out == f"{plan.programs(2)}\n"
    out = cli("plan", "job.yaml", "-n", 5, "--ranks", 2, "--home", 0, "--rendezvous").out
    assert out == f"{plan.programs(2, home=0, rendezvous=True)}\n"


def test_plan_with_a_rank_prints_its_program_alone(cli: Cli) -> None:
    assert cli("plan", "job.yaml", "-n", 2, "--ranks", 5, "--rank", 0).out.splitlines() == [
        "RECV prompts[0:1] from home for policy.0.0",
        "RUN  policy.0.0[0:2]",
        "SEND policy.0.0[0:2] to rank 2 for reward.0.0",
        "SEND policy.0.0[0:2] to home for output",
    ]


def test_of_large_programs_the_hint_is_a_command_that_ends_well(cli: Cli) -> None:
    out = cli("plan", "job.yaml", "-n", 500, "--ranks", 3).out
    hint = re.search(r"More: plan (.+)\n", out)
    assert hint is not None
    lines = cli("plan", "job.yaml", "-n", 500, *hint[1].split()).out.splitlines()
    assert len(lines) > 100
    assert all(str(parse_action(line)) == line for line in lines)


def test_plan_with_ranks_in_json_has_its_documented_shape(cli: Cli) -> None:
    found = cli("plan", "job.yaml", "-n", 2, "--ranks", 2, "--json").json["programs"]
    assert list(found) == ["ranks", "home", "rendezvous", "replicas", "messages", "actions"]
    assert (found["ranks"], found["home"], found["rendezvous"]) == (2, 2, False)
    assert found["replicas"] == {"policy": [0, 1], "reward": [0, 1, 0]}
    assert list(found["actions"]) == ["0", "1", "2"]
    sends = [line for lines in found["actions"].values() for line in lines if line.startswith("SEND")]
    assert len(sends) == found["messages"] > 0
    assert "programs" not in cli("plan", "job.yaml", "-n", 2, "--json").json


@pytest.mark.parametrize("option", [["--home", 0], ["--rank", 0], ["--rendezvous"]])
def test_options_of_programs_without_ranks_are_refused(cli: Cli, option: list[object]) -> None:
    assert "it goes with --ranks, e.g. --ranks 4" in joined(
        cli("plan", "job.yaml", "-n", 5, *option, ends=2).err
    )


def test_a_rank_that_there_is_not_is_refused(cli: Cli) -> None:
    ended = cli("plan", "job.yaml", "-n", 5, "--ranks", 2, "--rank", 3, ends=2)
    assert "there are programs 0 to 2" in joined(ended.err)
    assert "[bad-home]" in cli("plan", "job.yaml", "-n", 5, "--ranks", 2, "--home", 3, ends=3).err
