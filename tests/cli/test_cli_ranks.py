"""The command line on ranks: started by it, or by torchrun, where every rank runs the command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import Cli, raises_with_its_line

pytestmark = pytest.mark.timeout(240)


def run_module(folder: Path, line: str) -> tuple[str, str]:
    """Return what ``python -m`` and this line print on stdout and stderr, once the program has ended well."""
    command = [sys.executable, "-m", *line.split()]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_ranks_are_started_for_a_job_and_write_what_threads_write(cli: Cli, folder: Path) -> None:
    cli("run", "job.py", "--output", "threads.jsonl")
    out, _ = run_module(folder, "flowsched run job.py --backend torch --ranks 2 --output torch.jsonl")
    assert "8 calls on torch: started 5 replicas in " in out
    assert (folder / "torch.jsonl").read_bytes() == (folder / "threads.jsonl").read_bytes()


def test_under_torchrun_rank_0_alone_reports_and_saves(cli: Cli, folder: Path) -> None:
    cli("run", "job.py", "--output", "threads.json")
    launch = "torch.distributed.run --nproc-per-node 3 -m flowsched run job.py --backend torch"
    out, errors = run_module(folder, f"{launch} --json --output ranks.json")
    assert json.loads(out)["outputs"]["reward"]["rows"] == 10
    assert errors.count("reward 6/6 calls") == 1
    assert (folder / "ranks.json").read_bytes() == (folder / "threads.json").read_bytes()


def test_a_worker_that_raises_on_a_rank_is_shown_with_its_line_in_the_job(folder: Path) -> None:
    raises_with_its_line(folder, "torch")


def test_calibrate_measures_ranks(folder: Path) -> None:
    out, _ = run_module(folder, "flowsched calibrate --backend torch --repeats 2 --output costs.json --json")
    costs = json.loads(out)["costs"]
    assert costs["backend"] == "torch"
    assert costs["step"] > 0
    assert json.loads((folder / "costs.json").read_text())["costs"] == [costs]
