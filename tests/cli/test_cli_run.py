"""Running a job from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import flowsched as fs
from flowsched.address import load_job
from flowsched.cli.result_errors import ResultError
from flowsched.cli.results import save_results
from flowsched.plan import Plan, Table
from tests.cli.command_line import JOB, Cli, joined

ANSWERS = [f"{prompt} {i}" for prompt in ("a", "bb", "ccc", "dddd", "eeeee") for i in range(2)]
LENGTHS = [len(answer) for answer in ANSWERS]


def test_run_prints_a_summary_on_stdout_and_progress_on_stderr(cli: Cli) -> None:
    ended = cli("run", "job.py")
    assert [line.split() for line in ended.out.splitlines()[:3]] == [
        ["output", "rows", "columns"],
        ["policy", "10", "answer"],
        ["reward", "10", "length"],
    ]
    assert ended.out.splitlines()[3].startswith("5 samples, 8 calls on threads: started 5 replicas in ")
    assert set(ended.err.splitlines()) == {"policy 2/2 calls, 5/5 rows", "reward 6/6 calls, 10/10 rows"}


def test_run_in_json_has_its_documented_shape(cli: Cli) -> None:
    found = cli("run", "job.py", "--json").json
    times = ["replicas", "start_seconds", "seconds"]
    assert list(found) == ["graph", "backend", "samples", "calls", *times, "outputs", "saved"]
    assert found["outputs"] == {
        "policy": {"rows": 10, "columns": ["answer"]},
        "reward": {"rows": 10, "columns": ["length"]},
    }
    assert (found["graph"], found["backend"], found["samples"], found["saved"]) == ("job", "threads", 5, None)


def test_results_are_saved_row_by_row_with_their_samples(cli: Cli, folder: Path) -> None:
    assert "saved to out.jsonl" in cli("run", "job.py", "--output", "out.jsonl").out
    rows = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    assert rows == [
        *(
            {"output": "policy", "sample": i // 2, "row": i, "value": {"answer": a}}
            for i, a in enumerate(ANSWERS)
        ),
        *(
            {"output": "reward", "sample": i // 2, "row": i, "value": {"length": n}}
            for i, n in enumerate(LENGTHS)
        ),
    ]


def test_results_are_saved_as_columns(cli: Cli, folder: Path) -> None:
    cli("run", "job.py", "--output", "out.json")
    expected = {"policy": {"answer": ANSWERS}, "reward": {"length": LENGTHS}}
    assert json.loads((folder / "out.json").read_text()) == expected


def test_results_are_saved_as_arrays(cli: Cli) -> None:
    cli("run", "job.py", "--output", "out.npz")
    with np.load("out.npz") as arrays:
        assert arrays["reward/length"].tolist() == LENGTHS
        assert arrays["policy/answer"].tolist() == ANSWERS


def test_columns_of_every_kind_are_saved(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    nodes = [fs.Node(name, inputs=["x"]) for name in ("bare", "nested", "none")]
    plan = fs.compile(fs.Graph("kinds", ["x"], nodes), samples=2)
    outputs = {
        "bare": torch.ones(2, 2, dtype=torch.bfloat16),
        "nested": {"inner": {"ids": np.arange(2), "text": ["ä", "b"]}, "nothing": None},
        "none": None,
    }
    save_results(outputs, plan, tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text()) == {
        "bare": [[1.0, 1.0], [1.0, 1.0]],
        "nested": {"inner": {"ids": [0, 1], "text": ["ä", "b"]}, "nothing": None},
        "none": None,
    }
    save_results(outputs, plan, tmp_path / "out.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["value"] for row in rows] == [
        [1.0, 1.0],
        [1.0, 1.0],
        {"inner": {"ids": 0, "text": "ä"}, "nothing": None},
        {"inner": {"ids": 1, "text": "b"}, "nothing": None},
    ]


def test_columns_that_a_file_cannot_hold_are_named(tmp_path: Path) -> None:
    plan = fs.compile(fs.Graph("g", ["x"], [fs.Node("a", inputs=["x"])]), samples=2)
    with pytest.raises(ResultError, match=r"output 'a', column 'ids': .* Save it as .json or .jsonl"):
        save_results({"a": {"ids": [[1], [1, 2]]}}, plan, tmp_path / "out.npz")
    with pytest.raises(ResultError, match=r"output 'a', row 0: JSON cannot hold it, .*complex"):
        save_results({"a": [1j, 2j]}, plan, tmp_path / "out.jsonl")


def test_only_the_first_samples_are_taken_when_told_so(cli: Cli) -> None:
    assert cli("run", "job.py", "-n", 2, "--json").json["outputs"]["reward"]["rows"] == 4
    assert "6 samples are asked for, the data has 5" in cli("run", "job.py", "-n", 6, ends=3).err


def test_a_graph_file_runs_with_models_and_data_of_its_own_address(cli: Cli, folder: Path) -> None:
    (folder / "data.jsonl").write_text('"a"\n"bb"\n')
    (folder / "data.json").write_text('{"prompts": ["a", "bb", "ccc"]}')
    for data, samples in {"data.jsonl": 2, "data.json": 3, "job.py:data": 5, "job.py": 5}.items():
        for models in ("job.py:models", "job.py"):
            found = cli("run", "job.yaml", "--models", models, "--data", data, "--json").json
            assert found["samples"] == samples


def test_models_may_import_their_neighbours_when_they_are_built(cli: Cli, folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "late_cli_neighbour.py").write_text("size = 3\n")
    (folder / "elsewhere" / "models.py").write_text(
        "class Policy:\n"
        "    def __init__(self):\n"
        "        from late_cli_neighbour import size\n"
        "    def __call__(self, prompts):\n"
        "        return {'answer': [p for p in prompts for _ in range(2)]}\n"
        "models = {'policy': Policy, 'reward': lambda answers: answers}\n"
    )
    cli("run", "job.yaml", "--models", "elsewhere/models.py:models", "--data", "job.py:data")


def test_settings_change_how_but_not_what_is_computed(cli: Cli, folder: Path) -> None:
    cli("run", "job.py", "--output", "one.json")
    wide = ["--set", "nodes.reward.replicas=6", "--set", "nodes.policy.batch_size=none"]
    assert "reward 10/10 calls" not in cli("run", "job.py", "--output", "two.json", *wide).err
    cli("run", "job.py", "--output", "three.json", "--set", "nodes.reward.batch_size=1", "--max-in-flight", 1)
    files = [(folder / f"{name}.json").read_text() for name in ("one", "two", "three")]
    assert files[0] == files[1] == files[2]


def test_a_failing_worker_shows_its_traceback_first_and_exits_with_1(cli: Cli) -> None:
    ended = cli("run", "job.py", "--data", "job.py:bad_data", ends=1)
    shown = ended.err[ended.err.index("Traceback") :]
    line = JOB.splitlines().index('        raise ValueError("a bad answer")') + 1
    assert f'job.py", line {line}, in reward' in shown
    assert "flowsched" not in shown
    assert "ValueError: a bad answer\nerror: node 'reward', replica" in shown
    assert ended.out == ""


def test_a_failing_worker_in_json_is_an_object_with_its_traceback(cli: Cli) -> None:
    error = cli("run", "job.py", "--data", "job.py:bad_data", "--json", ends=1).json["error"]
    assert set(error) == {"code", "message", "problems", "node", "replica", "call", "samples", "traceback"}
    assert (error["code"], error["node"]) == ("worker", "reward")
    assert error["traceback"].endswith("ValueError: a bad answer")


def test_a_worker_that_returns_too_few_rows_fails_without_a_traceback(cli: Cli, folder: Path) -> None:
    (folder / "few.py").write_text("models = {'policy': lambda x: [1], 'reward': len}\n")
    err = cli("run", "job.py", "--models", "few.py:models", ends=1).err
    assert "error: node 'policy'" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["job.yaml"], "job.yaml holds no models. Give --models file.py (its `models`), file.py:name"),
        (["job.yaml", "--models", "empty.py"], "empty.py has no 'models'. Did you mean 'model'?"),
        (["job.py", "--data", "empty.py"], "Write empty.py:name for what stands under another name"),
        (["job.yaml", "--models", "job.py:models"], "job.yaml holds no data. Give --data"),
        (["job.py", "--models", "job.py:data"], "missing-model"),
        (["job.py", "--data", "job.py:models"], "surplus-input"),
        (["job.py", "--data", "missing.json"], "missing.json: no such file"),
        (["job.py", "--models", "job.py:model"], "Did you mean 'models'"),
        (
            ["job.py", "--models", "models"],
            "'models' is no address. Write path/file.py, path/file.py:name or",
        ),
    ],
)
def test_what_does_not_fit_the_graph_is_refused_before_anything_starts(
    cli: Cli, folder: Path, arguments: list[str], said: str
) -> None:
    (folder / "empty.py").write_text("model = {}\n")
    ended = cli("run", *arguments, ends=3)
    assert said in ended.err
    assert "calls" not in ended.err


def test_an_unknown_backend_exits_with_4(cli: Cli) -> None:
    assert (
        "there is no backend 'thread'. Did you mean 'threads'?"
        in cli("run", "job.py", "--backend", "thread", ends=4).err
    )


def test_more_replicas_than_the_machine_can_hold_exit_with_4(cli: Cli, folder: Path) -> None:
    (folder / "wide.py").write_text(
        "import flowsched as fs\n"
        "graph = fs.Graph('wide', ['x'], [fs.Node('a', ['x'], replicas=1_000_000)])\n"
        "models = {'a': lambda x: x}\n"
        "data = {'x': [0] * 1_000_000}\n"
    )
    assert "replicas" in cli("run", "wide.py", ends=4).err


@pytest.mark.parametrize("output", ["out.csv", "out"])
def test_an_output_with_another_suffix_is_a_command_line_that_is_wrong(cli: Cli, output: str) -> None:
    ended = cli("run", "job.py", "--output", output, ends=2)
    assert "calls" not in ended.err
    assert f"Invalid value for --output: {output} must end in .jsonl, .json, .npz" in joined(ended.err)


@pytest.mark.parametrize("output", ["missing/out.json", "folder.json", "link.json", "job.py/out.json"])
def test_an_output_that_could_not_be_written_is_refused_before_the_run(
    cli: Cli, folder: Path, output: str
) -> None:
    (folder / "folder.json").mkdir()
    (folder / "link.json").symlink_to("missing/out.json")
    ended = cli("run", "job.py", "--output", output, ends=3)
    assert "calls" not in ended.err
    assert f"error: {output} cannot be written: " in ended.err
    error = cli("run", "job.py", "--output", output, "--json", ends=3).json["error"]
    assert (error["code"], error["problems"]) == ("result-file", [])
    assert error["message"].startswith(f"{output} cannot be written: ")


@pytest.mark.parametrize("plan", ["plan.json", "plan.npz"])
def test_a_saved_plan_runs_with_models_and_data_of_their_own_address(
    cli: Cli, folder: Path, plan: str
) -> None:
    cli("plan", "job.yaml", "-n", 5, "--set", "nodes.reward.replicas=5", "--output", plan)
    given = ["--models", "job.py", "--data", "job.py"]
    ended = cli("run", plan, *given, "--output", "out.json")
    assert "reward 5/5 calls" in ended.err
    assert json.loads((folder / "out.json").read_text())["reward"] == {"length": LENGTHS}
    assert f"{plan} holds no models. Give --models" in cli("run", plan, ends=3).err
    assert f"{plan} holds no data. Give --data" in cli("run", plan, *given[:2], ends=3).err


def test_a_saved_plan_runs_on_as_many_samples_as_it_was_made_for(cli: Cli) -> None:
    given = ["--models", "job.py", "--data", "job.py"]
    cli("plan", "job.yaml", "-n", 3, "--output", "three.json")
    cli("plan", "job.yaml", "-n", 7, "--output", "seven.json")
    err = cli("run", "three.json", *given, ends=3).err
    assert (
        "the data has 5 samples, and three.json is a plan for 3. Give --samples 3 to take the first 3" in err
    )
    assert cli("run", "three.json", *given, "-n", 3, "--json").json["samples"] == 3
    err = cli("run", "seven.json", *given, ends=3).err
    assert "the data has 5 samples, and seven.json is a plan for 7. Plan the graph for 5 samples" in err
    assert "7 samples are asked for, the data has 5" in cli("run", "seven.json", *given, "-n", 7, ends=3).err


def test_a_saved_plan_that_breaks_a_promise_is_not_run(cli: Cli) -> None:
    plan = fs.compile(fs.load_graph("job.yaml"), samples=5)
    columns = {name: column.copy() for name, column in plan.table.columns()}
    columns["replica"][:] = 0
    Plan(plan.graph, plan.samples, Table(**columns)).save("plan.npz")
    ended = cli("run", "plan.npz", "--models", "job.py", "--data", "job.py", "--json", ends=3)
    assert ended.json["error"]["code"] == "check"


def test_help_says_what_the_saved_files_hold(cli: Cli, folder: Path) -> None:
    shown = joined(cli("run", "--help").out)
    example = json.loads(
        shown[shown.index(".jsonl one line a row, ") :].split("a row, ")[1].split("}: ")[0] + "}"
    )
    cli("run", "job.py", "--output", "out.jsonl")
    line = json.loads((folder / "out.jsonl").read_text().splitlines()[0])
    assert list(example) == list(line)
    assert list(map(type, example.values())) == list(map(type, line.values()))


def test_data_is_not_read_for_a_backend_that_is_not_there(cli: Cli, folder: Path) -> None:
    lazy = "def __getattr__(name):\n    raise RuntimeError(name)\n"
    text = (folder / "job.py").read_text().partition("models = ")[0] + "models = {}\n" + lazy
    (folder / "lazy.py").write_text(text)
    cli("run", "lazy.py", "--backend", "no", ends=4)
    assert "reading 'data' of lazy.py failed" in cli("run", "lazy.py", ends=3).err


def test_every_graph_of_the_job_file_is_one_graph(folder: Path) -> None:
    assert load_job(folder / "job.py").graph == load_job(folder / "job.yaml").graph


def test_options_of_the_backend_are_given_by_name(cli: Cli) -> None:
    cli("run", "job.py", "--option", "grace=0.5", "-o", "devices.policy=[cpu, meta]")
    ended = cli("run", "job.py", "--option", "grase=1", ends=4)
    assert "backend 'threads' has no option 'grase'. Did you mean 'grace'?" in joined(ended.err)
    ended = cli("run", "job.py", "--ranks", 4, ends=4)
    assert "backend 'threads' has no option 'ranks'" in joined(ended.err)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["grace"], "'grace' is not NAME=VALUE"),
        (["grace=1", "grace=2"], "'grace=2' gives 'grace' a second time"),
        (["grace=[1"], "the value of 'grace=[1' is no YAML"),
        (["grace=1", "grace.policy=2"], "'grace.policy=2' gives 'grace.policy' a second time"),
    ],
)
def test_options_that_are_not_written_right_are_refused(cli: Cli, options: list[str], said: str) -> None:
    given = [part for option in options for part in ("--option", option)]
    assert said in joined(cli("run", "job.py", *given, ends=2).err)
