"""The command line as a process of its own: what it imports, pipes, terminals and interrupts."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.command_line import JOB

FLOWSCHED = [sys.executable, "-m", "flowsched"]
HEAVY = ("torch", "ray", "transformers", "matplotlib")

IMPORTS = """
import sys
import flowsched.cli
sys.argv = ["flowsched", *sys.argv[1:]]
try:
    flowsched.cli.main()
finally:
    print("imported", *sorted(sys.modules), file=sys.stderr)
"""


def run(
    *arguments: str, ends: int = 0, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*FLOWSCHED, *arguments],
        capture_output=True, text=True, timeout=60, env={**os.environ, **(environment or {})}, check=False,
    )  # fmt: skip
    assert done.returncode == ends, done.stderr
    return done


def modules_after(*arguments: str) -> set[str]:
    """Return what is imported when a command has ended well."""
    command = [sys.executable, "-c", IMPORTS, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return set(done.stderr.splitlines()[-1].split()[1:])


@pytest.mark.parametrize(
    "command",
    [["plan", "-n", "5"], ["explain", "-n", "5"], ["validate", "-n", "5"], ["plan", "-n", "5", "--json"]],
    ids=str,
)
def test_a_graph_file_is_planned_where_its_models_cannot_be_imported(
    folder: Path, command: list[str]
) -> None:
    for name in ("job.py", "models.py", "policy.py", "reward.py", "prompts.py", "sitecustom.py"):
        (folder / name).write_text("raise SystemExit('a model was imported')\n")
    name, *options = command
    run(name, "job.yaml", *options)
    assert not {"job", "models", "policy"} & modules_after(name, "job.yaml", *options)


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["schema"], ["backends"], ["plan", "job.yaml", "-n", "5"], ["plan", "job.py", "-n", "5"]],
    ids=str,
)
@pytest.mark.usefixtures("folder")
def test_commands_that_run_nothing_load_no_heavy_library(arguments: list[str]) -> None:
    assert not set(HEAVY) & modules_after(*arguments)


@pytest.mark.usefixtures("folder")
def test_the_module_and_the_script_are_the_same_command() -> None:
    script = Path(sys.executable).with_name("flowsched")
    done = subprocess.run([script, "plan", "job.yaml", "-n", "5"], capture_output=True, text=True, check=True)
    assert done.stdout == run("plan", "job.yaml", "-n", "5").stdout


@pytest.mark.usefixtures("folder")
def test_a_reader_that_has_seen_enough_ends_the_command_in_silence() -> None:
    command = [*FLOWSCHED, "plan", "job.yaml", "-n", "100000", "--node", "reward"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"reward.0.0[0:2] <- policy.0.0[0:2]")
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


def test_an_interrupted_run_says_so_and_exits_with_130(folder: Path) -> None:
    job = JOB.replace(
        "    if ",
        "    __import__('pathlib').Path('started').touch()\n    __import__('time').sleep(0.1)\n    if ",
    )
    (folder / "slow.py").write_text(job + "data = {'prompts': ['a'] * 3000}\n")
    process = subprocess.Popen([*FLOWSCHED, "run", "slow.py"], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (folder / "started").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "interrupted"
    assert "Traceback" not in err


def on_terminal(*arguments: str, environment: dict[str, str] | None = None) -> str:
    """Return what a command writes to a terminal."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", **(environment or {})}
    with subprocess.Popen([*FLOWSCHED, *arguments], stdout=theirs, stderr=theirs, env=env) as process:
        os.close(theirs)
        written = b""
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:  # how Linux says that the other end is closed
                break
            if not chunk:
                break
            written += chunk
        assert process.wait(60) == 0
    os.close(ours)
    return written.decode()


@pytest.mark.usefixtures("folder")
def test_on_a_terminal_progress_is_live_and_exact() -> None:
    written = on_terminal("run", "job.py")
    assert "\x1b[" in written
    assert "6/6 calls, 10/10 rows" in written


@pytest.mark.usefixtures("folder")
def test_a_terminal_without_colour_gets_none() -> None:
    assert "\x1b[1m" in on_terminal("backends", environment={"NO_COLOR": ""})
    plain = on_terminal("backends", environment={"NO_COLOR": "1"})
    assert "threads" in plain
    assert "\x1b[3" not in plain


@pytest.mark.usefixtures("folder")
def test_what_is_no_terminal_gets_plain_text_only() -> None:
    done = run("run", "job.py")
    assert "\x1b" not in done.stdout + done.stderr
    assert "\x1b" not in run("doctor", "threads").stdout
