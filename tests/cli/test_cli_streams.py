"""A stream that is closed, full or no longer read never ends a run, and exit code 0 says that it is done."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from flowsched.cli.output import print_aside
from flowsched.cli.progress import Bars, make_progress
from flowsched.events import CallEnded, StepStarted
from tests.cli.command_line import Cli

RUN = f'"{sys.executable}" -m flowsched run job.py --output out.jsonl'
ROWS = 20


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash that ends with the exit code of its first command."""
    line = f"set -o pipefail; {line}"
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    "line",
    [
        f"{RUN} 2>&1 | head -1; exit ${{PIPESTATUS[0]}}",
        f"{RUN} 2> >(true)",
        f"{RUN} 2>&-",
        f"{RUN} 2>/dev/full",
        f"{RUN} >&-",
        f"{RUN} >&- 2>&-",
        f"{RUN} | true; exit ${{PIPESTATUS[0]}}",
    ],
    ids=lambda line: line.removeprefix(RUN).strip(),
)
def test_a_stream_that_takes_nothing_leaves_the_run_as_it_is(folder: Path, line: str) -> None:
    done = shell(line)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert len((folder / "out.jsonl").read_text().splitlines()) == ROWS


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "command",
    [
        "plan job.py -n 5",
        "explain job.py -n 5",
        "validate job.py -n 5",
        "backends",
        "doctor threads",
        "schema",
    ],
)
def test_every_command_ends_well_where_nobody_reads_and_badly_where_nothing_fits(command: str) -> None:
    start = f'"{sys.executable}" -m flowsched {command}'
    unread = shell(f"{start} | true; exit ${{PIPESTATUS[0]}}")
    assert (unread.returncode, unread.stderr) == (0, "")
    full = shell(f"{start} >/dev/full")
    assert full.returncode == 3
    assert full.stderr.startswith("error: stdout cannot be written: ")


def test_a_summary_that_cannot_be_written_is_an_error_after_the_results_are_saved(folder: Path) -> None:
    done = shell(f"{RUN} >/dev/full")
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].startswith("error: stdout cannot be written: ")
    assert "Traceback" not in done.stderr
    assert len((folder / "out.jsonl").read_text().splitlines()) == ROWS


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("stream", ["2>&-", "2>/dev/full", "2> >(true)", "--json >/dev/full", "--json >&-"])
def test_a_run_that_failed_exits_with_1_where_nobody_can_read_why(stream: str) -> None:
    assert shell(f"{RUN} --data job.py:bad_data {stream}").returncode == 1


def test_a_pipe_that_breaks_in_a_model_is_the_models_failure(cli: Cli, folder: Path) -> None:
    (folder / "models.py").write_text(
        "def policy(x):\n    raise BrokenPipeError(32, 'Broken pipe')\n"
        "models = {'policy': policy, 'reward': lambda x: x}\n"
    )
    assert "BrokenPipeError" in cli("run", "job.py", "--models", "models.py", ends=1).err


def test_a_pipe_that_breaks_while_data_is_read_is_no_success(folder: Path) -> None:
    (folder / "data.py").write_text("raise BrokenPipeError(32, 'Broken pipe')\n")
    done = shell(f"{RUN} --data data.py")
    assert done.returncode == 3
    assert not (folder / "out.jsonl").exists()


def test_progress_goes_quiet_without_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with make_progress() as progress:
        progress(StepStarted(0, {"a": 1}, {"a": 2}))
        progress(CallEnded(0, "a", 0, 0, 2, 0.1))
    print_aside("nobody reads this")


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), ValueError("closed")], ids=str)
def test_bars_go_quiet_when_the_terminal_is_gone(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    asked = 0

    def gone(*_: object, **__: object) -> None:
        nonlocal asked
        asked += 1
        raise error

    bars = Bars()
    with bars:
        monkeypatch.setattr(bars._live, "update", gone)
        bars(StepStarted(0, {"a": 1}, {"a": 2}))
        bars(CallEnded(0, "a", 0, 0, 2, 0.1))
    assert asked == 1


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", ["plan", "run", "explain", "validate"])
def test_a_command_line_that_is_wrong_is_json_where_json_is_asked_for(cli: Cli, command: str) -> None:
    error = cli(command, "job.py", "--unheard", "--json", ends=2).json["error"]
    assert error == {"code": "usage", "message": "No such option: --unheard", "problems": []}


def test_an_output_of_another_kind_is_json_where_json_is_asked_for(cli: Cli) -> None:
    error = cli("run", "job.py", "--output", "out.csv", "--json", ends=2).json["error"]
    assert error["code"] == "usage"
    assert "out.csv must end in .jsonl, .json, .npz" in error["message"]


def test_an_error_with_half_a_surrogate_pair_is_json(folder: Path) -> None:
    (folder / "models.py").write_text(
        "def policy(x):\n    raise ValueError('\\ud800 é')\nmodels = {'policy': policy, 'reward': lambda x: x}\n"
    )
    for locale in ("utf-8", "ascii"):
        done = shell(f"PYTHONIOENCODING={locale} {RUN} --models models.py --json")
        assert done.returncode == 1, done.stderr
        assert "\\ud800 \\u00e9" in done.stdout
