"""The jobs give the same bits on every backend."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

GRAPHS = Path(__file__).parents[2] / "graphs"
OTHERS = ("ray", "torch")

pytestmark = pytest.mark.timeout(300)


def run_script(name: str, *options: str, folder: Path) -> str:
    """Return what a job prints."""
    command = [sys.executable, str(GRAPHS / name), *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=280)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def on_threads(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The rollouts that threads write."""
    return _roll_out("threads", tmp_path_factory.mktemp("threads"))


def _roll_out(backend: str, folder: Path) -> bytes:
    options = ("--prompts", "37", "--seed", "4", "--output", "rollouts.jsonl", "--backend", backend)
    run_script("rollout_ngram.py", *options, folder=folder)
    return (folder / "rollouts.jsonl").read_bytes()


@pytest.mark.parametrize("backend", OTHERS)
def test_rollouts_are_the_same_bytes(backend: str, on_threads: bytes, tmp_path: Path) -> None:
    assert _roll_out(backend, tmp_path) == on_threads


@pytest.mark.parametrize("backend", OTHERS)
def test_the_reported_graph_prints_the_same_and_every_replica_works(backend: str, tmp_path: Path) -> None:
    said = {
        name: _own_lines(run_script("chatlearn_209.py", "--backend", name, folder=tmp_path))
        for name in ("threads", backend)
    }
    assert said[backend] == said["threads"]


def _own_lines(text: str) -> list[str]:
    """Return what the job itself prints: Ray's processes write warnings between its lines."""
    return [line for line in text.splitlines() if "raylet" not in line and line.strip()]
