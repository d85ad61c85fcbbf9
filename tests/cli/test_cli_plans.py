"""Planning, explaining and validating from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

import flowsched as fs
from flowsched.plan import Plan, Table
from flowsched.plan.files import load_plan
from tests.cli.command_line import Cli


def test_plan_prints_what_printing_the_plan_prints(cli: Cli) -> None:
    expected = fs.compile(fs.load_graph("job.yaml"), samples=5)
    assert cli("plan", "job.yaml", "--samples", 5).out.rstrip("\n") == str(expected).rstrip("\n")


@pytest.mark.parametrize("address", ["job.py", "job.py:graph", "job:graph"])
def test_a_graph_in_python_gives_the_plan_of_the_same_graph_in_yaml(cli: Cli, address: str) -> None:
    assert cli("plan", address, "-n", 5).out == cli("plan", "job.yaml", "-n", 5).out


def test_plan_of_one_node_prints_its_calls_in_notation(cli: Cli) -> None:
    lines = cli("plan", "job.yaml", "-n", 5, "--node", "policy").out.splitlines()
    assert lines == ["policy.0.0[0:6] <- prompts[0:3]", "policy.1.0[6:10] <- prompts[3:5]"]


def test_plan_in_json_has_its_documented_shape(cli: Cli) -> None:
    found = cli("plan", "job.yaml", "-n", 5, "--json").json
    plan = fs.compile(fs.load_graph("job.yaml"), samples=5)
    assert list(found) == ["graph", "samples", "hash", "nodes"]
    assert (found["samples"], found["hash"], found["graph"]) == (5, plan.hash, plan.graph.to_dict())
    assert [node["node"] for node in found["nodes"]] == ["policy", "reward"]


def test_plan_of_one_node_in_json_has_its_calls(cli: Cli) -> None:
    found = cli("plan", "job.yaml", "-n", 5, "--json", "--node", "policy").json
    assert [node["node"] for node in found["nodes"]] == ["policy"]
    assert found["calls"] == ["policy.0.0[0:6] <- prompts[0:3]", "policy.1.0[6:10] <- prompts[3:5]"]


@pytest.mark.parametrize(("form", "begins"), [("mermaid", "flowchart"), ("dot", "digraph")])
def test_plan_prints_diagrams(cli: Cli, form: str, begins: str) -> None:
    assert begins in cli("plan", "job.yaml", "-n", 5, "--format", form).out


@pytest.mark.parametrize("name", ["plan.json", "plan.npz"])
def test_a_saved_plan_is_the_plan_and_validates(cli: Cli, name: str) -> None:
    cli("plan", "job.yaml", "-n", 5, "--output", name)
    assert load_plan(name) == fs.compile(fs.load_graph("job.yaml"), samples=5)
    assert "keeps all promises" in cli("validate", name).out
    assert cli("validate", name, "--json").json["kind"] == "plan"


def test_a_plan_that_breaks_a_promise_does_not_validate(cli: Cli) -> None:
    plan = fs.compile(fs.load_graph("job.yaml"), samples=5)
    columns = {name: column.copy() for name, column in plan.table.columns()}
    columns["replica"][:] = 0
    Plan(plan.graph, plan.samples, Table(**columns)).save("plan.npz")
    assert "error: " in cli("validate", "plan.npz", ends=3).err
    error = cli("validate", "plan.npz", "--json", ends=3).json["error"]
    assert error["code"] == "check"
    assert set(error["problems"][0]) == {"code", "place", "message", "mend"}


def test_a_damaged_plan_file_is_refused(cli: Cli, folder: Path) -> None:
    (folder / "plan.npz").write_bytes(b"PK")
    assert "plan.npz" in cli("validate", "plan.npz", ends=3).err


def test_a_saved_plan_takes_no_samples(cli: Cli) -> None:
    cli("plan", "job.yaml", "-n", 5, "--output", "plan.json")
    assert "without --samples" in cli("validate", "plan.json", "-n", 5, ends=2).err


def test_validate_says_that_a_graph_is_sound(cli: Cli) -> None:
    assert cli("validate", "job.yaml").out == "graph 'job' is sound: 2 nodes, 5 replicas\n"
    found = cli("validate", "job.yaml", "--json").json
    assert found == {"valid": True, "kind": "graph", "graph": "job", "samples": None, "hash": None}


def test_validate_with_samples_checks_the_plan_too(cli: Cli) -> None:
    assert "its plan for 5 samples keeps all promises" in cli("validate", "job.yaml", "-n", 5).out
    assert cli("validate", "job.yaml", "-n", 5, "--json").json["samples"] == 5


def test_problems_of_a_graph_file_are_printed_with_their_lines_and_nothing_else(
    cli: Cli, folder: Path
) -> None:
    (folder / "bad.yaml").write_text("name: g\nsources: [x]\nnodes:\n- {name: a, inputs: [y], replica: 2}\n")
    ended = cli("validate", "bad.yaml", ends=3)
    assert ended.out == ""
    assert ended.err.startswith("error: graph file 'bad.yaml' has 2 problems:\n")
    assert "bad.yaml:4:22: " in ended.err
    assert "bad.yaml:4:26: " in ended.err
    assert "Traceback" not in ended.err


def test_problems_in_json_are_objects_on_stdout(cli: Cli, folder: Path) -> None:
    (folder / "bad.yaml").write_text("name: g\nsources: [x]\nnodes:\n- {name: a, inputs: [y]}\n")
    ended = cli("plan", "bad.yaml", "-n", 5, "--json", ends=3)
    assert list(ended.json) == ["error"]
    assert list(ended.json["error"]) == ["code", "message", "problems"]
    assert ended.json["error"]["code"] == "graph"
    assert ended.json["error"]["problems"][0]["place"].startswith("bad.yaml:4:22")
    assert ended.err == ""


def test_explain_answers_each_question(cli: Cli) -> None:
    plan = fs.compile(fs.load_graph("job.yaml"), samples=5)
    asked = {"node": "reward", "edge": "policy->reward", "sample": 3, "replica": "policy.1"}
    for name, value in asked.items():
        expected = plan.explain(**{name: value})  # type: ignore[arg-type]
        assert cli("explain", "job.yaml", "-n", 5, f"--{name}", value).out == f"{expected}\n"
        assert cli("explain", "job.yaml", "-n", 5, f"--{name}", value, "--json").json == expected.to_dict()


def test_explain_lists_everything_when_told_to(cli: Cli) -> None:
    some = cli("explain", "job.yaml", "-n", 500, "--replica", "reward.0").out
    everything = cli("explain", "job.yaml", "-n", 500, "--replica", "reward.0", "--all").out
    assert len(everything.splitlines()) > len(some.splitlines())


@pytest.mark.parametrize(
    "asked", [["--node", "rewrd"], ["--sample", "5"], ["--replica", "policy.2"], ["--edge", "reward->policy"]]
)
def test_explain_refuses_what_the_plan_does_not_have(cli: Cli, asked: list[str]) -> None:
    assert cli("explain", "job.yaml", "-n", 5, *asked, ends=3).err.startswith("error: ")


def test_sizes_that_cannot_be_cut_are_refused(cli: Cli) -> None:
    ended = cli(
        "plan",
        "job.yaml",
        "-n",
        5,
        "--set",
        "nodes.reward.group=4",
        "--set",
        "nodes.reward.batch_size=4",
        ends=3,
    )
    assert "sizes-cannot-meet" in ended.err


def test_an_address_that_leads_nowhere_is_refused(cli: Cli) -> None:
    assert "there is no file jobb.py. Did you mean job.py?" in cli("plan", "jobb.py", "-n", 5, ends=3).err


@pytest.mark.parametrize(
    "arguments", [["plan", "job.yaml"], ["plan", "job.yaml", "-n", "-1"], ["plan"], ["paln"]]
)
def test_a_wrong_command_line_exits_with_2(cli: Cli, arguments: list[str]) -> None:
    cli(*arguments, ends=2)


def test_a_failing_module_shows_its_own_traceback_first(cli: Cli, folder: Path) -> None:
    (folder / "broken.py").write_text("def load():\n    raise OSError('no corpus')\nload()\n")
    err = cli("plan", "broken.py", "-n", 5, ends=3).err
    assert err.startswith("Traceback (most recent call last):\n")
    assert 'broken.py", line 2, in load' in err
    assert "flowsched/" not in err
    assert err.splitlines()[-1].startswith("error: importing broken.py failed with OSError: no corpus")
