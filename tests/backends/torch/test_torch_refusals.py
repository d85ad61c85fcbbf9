"""Local ranks that cannot be are refused before a process is started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flowsched_torch import TorchBackend

import flowsched as fs
from flowsched.errors import BackendError, CapacityError
from flowsched.programs import PlacementError

pytestmark = pytest.mark.timeout(110)

PLAN = fs.compile(fs.Graph("g", ["x"], [fs.Node("a", ["x"], replicas=2), fs.Node("b", ["a"])]), 4)
MODELS: dict[str, Any] = {"a": lambda rows: rows + 1, "b": lambda rows: rows * 2}


@pytest.mark.parametrize(
    "placement",
    [5, [("a", [0, 1])], {"a": 0, "b": [0]}, {"a": None, "b": [0]}, {"a": ["0", "1"], "b": [0]}, {"a": "01"}],
)
def test_a_placement_of_another_kind_is_refused(placement: Any) -> None:
    backend = TorchBackend(placement=placement, start="local")
    with pytest.raises(PlacementError, match=r"wrong-type|bad-rank"):
        fs.run(PLAN, MODELS, {"x": np.arange(4)}, backend=backend)


@pytest.mark.parametrize("options", [{"ranks": 10**7}, {"placement": {"a": [0, 10**7], "b": [0]}}])
def test_more_ranks_than_a_process_can_be_connected_to_are_refused(options: dict[str, Any]) -> None:
    backend = TorchBackend(start="local", **options)
    with pytest.raises(CapacityError, match=r"ranks take .* open files.*ulimit -n"):
        fs.run(PLAN, MODELS, {"x": np.arange(4)}, backend=backend)


@pytest.mark.parametrize("seconds", [float("inf"), 1e300, float("nan")])
def test_a_timeout_that_no_system_can_wait_for_is_refused(seconds: float) -> None:
    with pytest.raises(BackendError, match=r"timeout is .*Give seconds, 1 to 1,000,000"):
        TorchBackend(timeout=seconds)


PROGRAM = """
import numpy as np, flowsched as fs
graph = fs.Graph("g", ["x"], [fs.Node("a", ["x"], replicas=2)])
out = fs.run(fs.compile(graph, 4), {"a": lambda rows: rows + 1}, {"x": np.arange(4)}, backend="torch", ranks=2)
print(out["a"].tolist())
"""


def test_modules_of_the_working_directory_do_not_stand_in_for_those_of_python(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    for name in "json", "socket", "selectors":
        (tmp_path / "work" / f"{name}.py").write_text("raise RuntimeError('not the one of Python')\n")
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path / "work",
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[1, 2, 3, 4]"
