"""Planning, explaining and validating from the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import flowsched as fs
from flowsched.plan import Plan, Table
from flowsched.plan.files import load_plan
from tests.cli.command_line import JOB, Cli, joined


def test_plan_prints_what_printing_the_plan_prints_and_how_to_see_more_on_the_command_line(cli: Cli) -> None:
    *expected, hint = str(fs.compile(fs.load_graph("job.yaml"), samples=5)).splitlines()
    *lines, said = cli("plan", "job.yaml", "--samples", 5).out.splitlines()
    assert lines == expected
    assert hint.split()[0] == said.split()[0] == "More:"
    assert said.strip() == "More: plan --node reward, explain --sample 1, explain --node reward"


def test_every_hint_is_a_command_that_ends_well(cli: Cli) -> None:
    out = cli("plan", "job.yaml", "-n", 1500).out
    hints = out.splitlines()[-1].partition("More: ")[2].split(", ")
    hints += re.findall(r"more: (.+)", out)
    assert len(hints) == 4
    for hint in hints:
        command, *options = hint.split()
        assert cli(command, "job.yaml", "-n", 1500, *options).out


def test_no_output_speaks_of_python(cli: Cli) -> None:
    plans = [["-n", samples] for samples in (1, 5, 100, 100_000)]
    for options in plans:
        for command in (["plan"], ["explain"], ["explain", "--node", "reward"], ["explain", "--sample", 0]):
            name, *asked = command
            out = cli(name, "job.yaml", *options, *asked).out
            assert "plan[" not in out
            assert "explain(" not in out


def test_an_explanation_says_how_all_its_calls_are_listed(cli: Cli) -> None:
    shown = cli("explain", "job.yaml", "-n", 200, "--node", "reward").out
    assert "more: --all\n" in shown
    everything = cli("explain", "job.yaml", "-n", 200, "--node", "reward", "--all").out
    assert " more" not in everything
    assert "more: --all" not in cli("explain", "job.yaml", "-n", 100_000, "--node", "reward").out


@pytest.mark.parametrize("address", ["job.py", "job.py:graph", "job:graph"])
def test_a_graph_in_python_gives_the_plan_of_the_same_graph_in_yaml(cli: Cli, address: str) -> None:
    assert cli("plan", address, "-n", 5).out == cli("plan", "job.yaml", "-n", 5).out


def test_plan_of_one_node_prints_its_calls_in_notation(cli: Cli) -> None:
    lines = cli("plan", "job.yaml", "-n", 5, "--node", "policy").out.splitlines()
    assert lines == ["policy.0.0[0:6] <- prompts[0:3]", "policy.1.0[6:10] <- prompts[3:5]"]


def test_plan_in_json_has_its_documented_shape(cli: Cli) -> None:
    found = cli("plan", "job.yaml", "-n", 5, "--json").json
    plan = fs.compile(fs.load_graph("job.yaml"), samples=5)
    assert list(found) == ["graph", "samples", "hash", "saved", "nodes"]
    assert (found["samples"], found["hash"], found["graph"]) == (5, plan.hash, plan.graph.to_dict())
    assert [node["node"] for node in found["nodes"]] == ["policy", "reward"]


def test_plan_of_one_node_in_json_has_its_calls(cli: Cli) -> None:
    found = cli("plan", "job.yaml", "-n", 5, "--json", "--node", "policy").json
    assert [node["node"] for node in found["nodes"]] == ["policy"]
    assert found["calls"] == ["policy.0.0[0:6] <- prompts[0:3]", "policy.1.0[6:10] <- prompts[3:5]"]


@pytest.mark.parametrize(("form", "begins"), [("mermaid", "flowchart"), ("dot", "digraph")])
def test_plan_prints_diagrams(cli: Cli, form: str, begins: str) -> None:
    assert begins in cli("plan", "job.yaml", "-n", 5, "--format", form).out


SAVED = pytest.mark.parametrize("name", ["plan.json", "plan.npz"])


@SAVED
def test_a_saved_plan_is_the_plan_and_validates(cli: Cli, name: str) -> None:
    cli("plan", "job.yaml", "-n", 5, "--output", name)
    assert load_plan(name) == fs.compile(fs.load_graph("job.yaml"), samples=5)
    assert "keeps all promises" in cli("validate", name).out
    assert cli("validate", name, "--json").json["kind"] == "plan"


@SAVED
def test_saving_says_what_was_saved_and_where(cli: Cli, name: str) -> None:
    ended = cli("plan", "job.yaml", "-n", 5, "--output", name)
    assert ended.err == f"saved the plan (5 samples, 8 calls, hash {load_plan(name).hash[:12]}) to {name}\n"
    assert ended.out == cli("plan", "job.yaml", "-n", 5).out
    ended = cli("plan", "job.yaml", "-n", 5, "--output", name, "--json")
    assert (ended.err, ended.json["saved"]) == ("", name)
    assert cli("plan", "job.yaml", "-n", 5, "--json").json["saved"] is None


@SAVED
def test_a_saved_plan_is_planned_and_explained_as_its_graph_is(cli: Cli, name: str) -> None:
    cli("plan", "job.yaml", "-n", 500, "--output", name)
    asked = ("plan", "plan --node policy", "plan --format dot", "plan --json")
    for command in (*asked, "explain", "explain --sample 3", "explain --node reward --json"):
        verb, *options = command.split()
        assert cli(verb, name, *options).out == cli(verb, "job.yaml", "-n", 500, *options).out
        assert cli(verb, name, "-n", 500, *options).out == cli(verb, name, *options).out


@SAVED
@pytest.mark.parametrize("command", ["plan", "explain", "validate", "run"])
def test_a_saved_plan_takes_no_other_samples_and_no_settings(cli: Cli, name: str, command: str) -> None:
    cli("plan", "job.yaml", "-n", 5, "--output", name)
    said = f"6 samples are asked for, and {name} is a saved plan for 5."
    assert said in joined(cli(command, name, "-n", 6, ends=2).err)
    err = cli(command, name, "--set", "nodes.reward.replicas=1", ends=2).err
    assert f"Invalid value for --set: {name} is a saved plan" in joined(err)


def test_a_plan_in_json_is_told_from_a_graph_by_what_it_says_it_is(cli: Cli, folder: Path) -> None:
    fs.save_graph(fs.load_graph("job.yaml"), "graph.json")
    assert cli("plan", "graph.json", "-n", 5).out == cli("plan", "job.yaml", "-n", 5).out
    cli("plan", "job.yaml", "-n", 5, "--output", "plan.json")
    data = json.loads((folder / "plan.json").read_text())
    (folder / "turned.json").write_text(json.dumps(dict(reversed(data.items()))))
    assert cli("plan", "turned.json").out == cli("plan", "plan.json").out
    (folder / "cut.json").write_text((folder / "plan.json").read_text()[:-20])
    assert "plan file 'cut.json': it is not JSON" in cli("plan", "cut.json", ends=3).err


@pytest.mark.parametrize("command", ["plan", "explain"])
def test_without_samples_the_data_beside_the_graph_says_how_many(cli: Cli, command: str) -> None:
    assert cli(command, "job.py").out == cli(command, "job.py", "-n", 5).out
    assert cli(command, "job:graph", "--json").out == cli(command, "job.py", "-n", 5, "--json").out


def test_a_graph_without_data_needs_samples_and_says_so(cli: Cli, folder: Path) -> None:
    said = "job.yaml holds no data that says how many. Give a number, e.g. --samples 16"
    assert said in joined(cli("plan", "job.yaml", ends=2).err)
    (folder / "bare.py").write_text(JOB.partition("models = ")[0])
    assert "bare.py holds no data" in joined(cli("explain", "bare.py", ends=2).err)


def test_data_is_read_only_where_the_samples_are_not_given(cli: Cli, folder: Path) -> None:
    lazy = "def __getattr__(name):\n    raise RuntimeError('the corpus is not here')\n"
    (folder / "lazy.py").write_text(JOB.partition("models = ")[0] + lazy)
    cli("plan", "lazy.py", "-n", 5)
    err = cli("plan", "lazy.py", ends=3).err
    assert "reading 'data' of lazy.py failed with RuntimeError: the corpus is not here" in err
    assert err.endswith("It is read to count the samples: with --samples it is not\n")


def test_data_that_does_not_fit_the_graph_is_refused_when_it_is_counted(cli: Cli, folder: Path) -> None:
    (folder / "other.py").write_text(JOB + "data = {'questions': ['a']}\n")
    assert "missing-input" in cli("plan", "other.py", ends=3).err


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
