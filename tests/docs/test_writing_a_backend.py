"""The example of the page on writing a backend is complete: it passes the suite as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "writing-a-backend.md"
FEW = """
    cuts = ((1, None), (3, 2), (4, 1))
    widest = 6
    examples = 3
"""


@pytest.mark.slow
@pytest.mark.timeout(420)
@pytest.mark.skipif(sys.platform == "win32", reason="its replicas are forked")
def test_the_example_backend_passes_the_suite(tmp_path: Path) -> None:
    backend, suite = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "processes.py").write_text(backend)
    (tmp_path / "test_processes.py").write_text(suite + FEW)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout", "60", "-rs"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout[-5_000:]
    assert re.search(r"[1-9]\d\d passed", done.stdout)
    skipped = re.findall(r"SKIPPED .*", done.stdout)
    assert all("backend 'processes' lacks" in line for line in skipped), skipped
