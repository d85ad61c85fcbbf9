"""What the tests of the command line share: one small job in Python and in YAML, and how a command ended."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

JOB = """\
import flowsched as fs

graph = fs.Graph(
    "job",
    sources=["prompts"],
    nodes=[
        fs.Node("policy", inputs=["prompts"], replicas=2, batch_size=4, expand=2),
        fs.Node("reward", inputs=["policy"], replicas=3, batch_size=2),
    ],
    outputs=["policy", "reward"],
)


class Policy:
    def __call__(self, prompts):
        return {"answer": [f"{p} {i}" for p in prompts for i in range(2)]}


def reward(answers):
    if "bad 0" in answers["answer"]:
        raise ValueError("a bad answer")
    return {"length": [len(a) for a in answers["answer"]]}


models = {"policy": Policy, "reward": reward}
data = {"prompts": ["a", "bb", "ccc", "dddd", "eeeee"]}
bad_data = {"prompts": ["a", "bad"]}
"""

GRAPH = """\
name: job
sources: [prompts]
nodes:
  - {name: policy, inputs: [prompts], replicas: 2, batch_size: 4, expand: 2}
  - {name: reward, inputs: [policy],  replicas: 3, batch_size: 2}
outputs: [policy, reward]
"""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., Ended]


def joined(text: str) -> str:
    """Return text in one line, however it was wrapped."""
    return " ".join(text.split())


def raises_with_its_line(folder: Path, backend: str) -> None:
    """Assert that the job, run in a process of its own on data that a worker refuses, shows that worker's line."""
    (folder / "job.py").write_text(JOB)
    command = [sys.executable, "-m", "flowsched", "run", "job.py", "--backend", backend]
    done = subprocess.run(
        [*command, "--data", "job.py:bad_data"], cwd=folder, capture_output=True, text=True, timeout=180
    )
    assert done.returncode == 1, done.stderr
    line = JOB.splitlines().index('        raise ValueError("a bad answer")') + 1
    assert re.search(
        rf'File ".*job\.py", line {line}, in reward\n +raise ValueError\("a bad answer"\)', done.stderr
    )
    assert "node 'reward', replica " in done.stderr
