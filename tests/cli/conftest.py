"""A folder with one small job in every form, and the command line in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from flowsched.cli.app import make_app
from tests.cli.command_line import GRAPH, JOB, Cli, Ended


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "job.yaml").write_text(GRAPH)
    return tmp_path


@pytest.fixture
def cli(folder: Path) -> Cli:  # noqa: ARG001 (commands run in it)
    """Run a command in the folder; ``ends`` is the exit code that it must have."""

    def run(*arguments: object, ends: int = 0) -> Ended:
        result = CliRunner().invoke(make_app(), [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == ends, result.output
        return Ended(result.exit_code, result.stdout, result.stderr)

    return run
