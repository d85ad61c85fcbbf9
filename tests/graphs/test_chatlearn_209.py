"""The report that flowsched was started from: its models, its sizes, and what it expects."""

from __future__ import annotations

import dataclasses
import importlib
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import flowsched as fs

GRAPHS = Path(__file__).parents[2] / "graphs"
SCRIPT = GRAPHS / "chatlearn_209.py"


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(GRAPHS)
    return importlib.import_module("chatlearn_209")


@pytest.fixture
def steps(job: ModuleType) -> list[Mapping[str, Any]]:
    pytest.importorskip("torch")
    found: list[Mapping[str, Any]] = job.run_steps()
    return found


def test_the_script_prints_the_routing_and_that_all_the_report_expects_is_so() -> None:
    pytest.importorskip("torch")
    ran = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, check=True)
    routing, _, table = ran.stdout.partition("\n\n  node       replicas  step 0")
    assert "reward" in routing
    assert "16" in routing
    assert table.count("  yes  ") == 5
    assert "NO " not in table
    rows = dict(line.split(maxsplit=1) for line in table.splitlines()[1:5])
    assert {name: list(map(int, cells.split())) for name, cells in rows.items()} == {
        "policy": [2, 2, 2, 16, 32],
        "reference": [8, 8, 8, 4, 32],
        "value": [8, 8, 8, 4, 32],
        "reward": [8, 8, 8, 4, 32],
    }


def test_every_replica_of_every_model_works_in_both_steps(
    job: ModuleType, steps: list[Mapping[str, Any]]
) -> None:
    assert len(steps) == 2
    for out in steps:
        assert {name: len(set(batch["replica"])) for name, batch in out.items()} == {
            "policy": 2,
            "reference": 8,
            "value": 8,
            "reward": 8,
        }
        for node in job.graph:
            assert out[node.name]["replica"][-1] == node.replicas - 1


def test_replicas_live_on_from_one_step_to_the_next(job: ModuleType, steps: list[Mapping[str, Any]]) -> None:
    first, second = (
        dict(zip(out["value"]["replica"], out["value"]["consumed"], strict=True)) for out in steps
    )
    assert first == dict.fromkeys(range(8), 2)
    assert second == dict.fromkeys(range(8), 4)
    for node in job.graph:
        assert job.work_of(node, steps).total == 32


def test_values_are_those_of_the_report(steps: list[Mapping[str, Any]]) -> None:
    torch = pytest.importorskip("torch")
    ones = torch.ones(16, 1024)
    for out in steps:
        assert torch.equal(out["policy"]["policy_out"], ones)
        assert torch.equal(out["reference"]["ref_out"], 2 * ones)
        assert torch.equal(out["reward"]["reward_out"], 3 * ones)
        assert torch.equal(out["value"]["value_out"], 3 * ones)


def test_samples_come_back_in_the_order_of_the_data(steps: list[Mapping[str, Any]]) -> None:
    for step, out in enumerate(steps):
        for batch in out.values():
            assert batch["query"].shape == (16, 1024)
            assert batch["query"][:, 0].tolist() == [i + 16 * step for i in range(16)]
            assert (batch["query"] == batch["query"][:, :1]).all()


def test_a_replica_that_had_nothing_to_do_and_rows_out_of_order_are_noticed(
    job: ModuleType, steps: list[Mapping[str, Any]]
) -> None:
    undivided = job.graph["reference"]
    four_of_eight = {
        "replica": [replica for replica in range(4) for _ in range(4)],
        "consumed": [4] * 16,
        "query": steps[1]["reference"]["query"].flip(0),
    }
    spoilt = [steps[0], {**steps[1], "reference": four_of_eight}]
    works = [job.work_of(node, spoilt) for node in job.graph]
    assert job.work_of(undivided, spoilt).idle == 4
    found = job.checks(works, spoilt)
    assert [holds for sentence, holds in found.items() if "idle" in sentence] == [False]
    assert [holds for sentence, holds in found.items() if "place i" in sentence] == [False]
    assert [holds for sentence, holds in found.items() if "its last" in sentence] == [False]
    assert [holds for sentence, holds in found.items() if "everywhere" in sentence] == [True]


def test_the_routing_is_one_fragment_for_each_input_and_no_replica_idle(job: ModuleType) -> None:
    plan = fs.compile(job.graph, samples=16)
    assert {name: len(plan[name]) for name in ("policy", "reference", "value", "reward")} == {
        "policy": 4,
        "reference": 8,
        "value": 8,
        "reward": 8,
    }
    for name, inputs in ("reference", 1), ("value", 1), ("reward", 2):
        calls = list(plan[name])
        assert {call.replica for call in calls} == set(range(8))
        assert {call.stop - call.start for call in calls} == {2}
        assert {tuple(len(feed.fragments) for feed in call.feeds) for call in calls} == {(1,) * inputs}


def test_data_of_the_file_is_the_first_step(job: ModuleType) -> None:
    pytest.importorskip("torch")
    out = fs.run(fs.compile(job.graph, samples=16), job.models, job.data)
    assert out["value"]["query"][:, 0].tolist() == list(range(16))
    with pytest.raises(AttributeError, match="dataa"):
        _ = job.dataa


def test_without_torch_the_graph_is_planned_and_running_says_in_one_sentence_what_to_install(
    job: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SystemExit) as stopped:
        job.main([])
    assert stopped.value.code == 1
    printed = capsys.readouterr()
    assert "reward" in printed.out
    assert printed.err.count("\n") == 1
    assert "torch" in printed.err
    assert 'pip install "flowsched[torch]"' in printed.err


def test_importing_the_file_loads_no_torch() -> None:
    program = "import chatlearn_209, sys; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=GRAPHS)


def test_it_runs_with_other_replicas_and_sizes_too(job: ModuleType) -> None:
    torch = pytest.importorskip("torch")
    nodes = [
        dataclasses.replace(node, replicas=replicas, batch_size=size)
        for node, replicas, size in zip(job.graph, (3, 5, 1, 4), (3, None, 7, 2), strict=True)
    ]
    uneven = fs.Graph("uneven", job.graph.sources, nodes, job.graph.outputs)
    out = fs.run(fs.compile(uneven, samples=16), job.models, job.queries_of(1))
    assert torch.equal(out["reward"]["reward_out"], torch.full((16, 1024), 3.0))
    assert out["reward"]["query"][:, 0].tolist() == [16 + i for i in range(16)]
