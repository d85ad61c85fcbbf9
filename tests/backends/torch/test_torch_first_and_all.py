"""inputs_on and outputs_on: one script that runs by itself and under torchrun, and what contradicts itself."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from flowsched_torch import TorchBackend

from flowsched.errors import BackendError
from tests.backends.torch.launching import finish, start

pytestmark = pytest.mark.timeout(110)

SCRIPT = """
import os, sys
from pathlib import Path
import numpy as np, flowsched as fs
graph = fs.Graph("g", ["x"], [fs.Node("a", ["x"], replicas=2)])
plan = fs.compile(graph, 4)
out = fs.run(plan, {"a": lambda rows: rows + 1}, {"x": np.arange(4)}, backend="torch", **OPTIONS)
told = str(out["a"].tolist()) if out.are_here else "elsewhere"
(Path(sys.argv[0]).parent / ("rank-" + os.environ.get("RANK", "0") + ".txt")).write_text(told)
"""
TORCHRUN = [
    "-m",
    "torch.distributed.run",
    "--nproc-per-node=2",
    "--rdzv-backend=c10d",
    "--rdzv-endpoint=127.0.0.1:0",
]


@pytest.mark.parametrize("launcher", [[], TORCHRUN])
@pytest.mark.parametrize("where", ["first", "all"])
def test_one_script_has_the_outputs_by_itself_and_under_torchrun(
    tmp_path: Path, launcher: list[str], where: str
) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.replace("OPTIONS", repr({"inputs_on": where, "outputs_on": where})))
    launched = finish([start([sys.executable, *launcher, str(script)])], tmp_path, 90.0)
    told = [file.read_text() for file in sorted(tmp_path.glob("rank-*.txt"))]
    right = "[1, 2, 3, 4]"
    other = right if where == "all" else "elsewhere"
    assert told == ([right, other] if launcher else [right]), launched.output


def _option(name: str, where: str) -> Any:
    return {name: where}


@pytest.mark.parametrize("name", ["inputs_on", "outputs_on"])
def test_ranks_that_this_program_starts_cannot_all_hold_what_it_gives_or_gets(name: str) -> None:
    with pytest.raises(
        BackendError, match=rf"{name}='all' is for programs that every rank runs.*Leave {name}= out"
    ):
        TorchBackend(start="local", **_option(name, "all"))
    TorchBackend(start="local", **_option(name, "first"))
