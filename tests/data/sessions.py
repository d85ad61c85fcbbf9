"""Commands that start processes of their own, run to their end or to a time limit, with nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

LAUNCHERS_WRITE = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def run_session(command: Sequence[str], log: Path, seconds: float, **environment: str) -> None:
    """Run a command in a session of its own, and end whatever of it is left.

    Args:
        command: what is run, without what a launcher may have written into this process's environment.
        log: where its output goes.
        seconds: the longest it may take.
        environment: more variables.

    Raises:
        AssertionError: it has failed, or has left processes behind.
        subprocess.TimeoutExpired: it took longer.
    """
    kept: Mapping[str, str] = {key: value for key, value in os.environ.items() if key not in LAUNCHERS_WRITE}
    with log.open("w") as written:
        process = subprocess.Popen(
            command,
            stdout=written,
            stderr=subprocess.STDOUT,
            env={**kept, **environment},
            start_new_session=True,
        )
    try:
        code = process.wait(seconds)
        left = _lives(process.pid, 10)
    finally:
        end_session(process.pid)
        process.wait(10)
    if code or left:
        raise AssertionError(f"ended with {code}, processes left behind: {left}\n{log.read_text()[-4000:]}")


def end_session(leader: int) -> None:
    """Kill all processes of a session."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return


def _lives(leader: int, seconds: float) -> bool:
    """Return whether a process of the session is there after so long at most."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            os.killpg(leader, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.05)
    return True
