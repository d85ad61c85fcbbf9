"""A job in a file that no process can import: what its workers raise is shown with the file and the line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import JOB

pytestmark = pytest.mark.timeout(200)


def test_a_worker_that_raises_in_an_actor_is_shown_with_its_line_in_the_job(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(JOB)
    command = [sys.executable, "-m", "flowsched", "run", "job.py", "--backend", "ray"]
    done = subprocess.run(
        [*command, "--data", "job.py:bad_data"], cwd=tmp_path, capture_output=True, text=True, timeout=180
    )
    assert done.returncode == 1, done.stderr
    line = JOB.splitlines().index('        raise ValueError("a bad answer")') + 1
    assert re.search(
        rf'File ".*job\.py", line {line}, in reward\n +raise ValueError\("a bad answer"\)', done.stderr
    )
    assert "node 'reward', replica " in done.stderr
