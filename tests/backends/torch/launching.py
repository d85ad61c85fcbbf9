"""Programs on several ranks: started together, each with a time limit, and none left behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).with_name("program.py")
ROOT = Path(__file__).parents[3]
_LAUNCHERS_END = 10.0  # seconds


@dataclass(frozen=True)
class Launched:
    """What a launch came to.

    Attributes:
        said: by rank, what its program wrote; ranks that died wrote nothing.
        output: what was printed.
        seconds: how long it took.
    """

    said: dict[int, dict[str, Any]]
    output: str
    seconds: float


def torchrun(
    folder: Path,
    ranks: int,
    settings: dict[str, Any],
    *,
    seconds: float = 90.0,
    prefix: Sequence[str] = (),
    program: Path = PROGRAM,
) -> Launched:
    """Run the program on so many ranks of this machine with torchrun."""
    command = [
        *prefix,
        sys.executable,
        "-m",
        "torch.distributed.run",
        f"--nproc-per-node={ranks}",
        "--rdzv-backend=c10d",
        "--rdzv-endpoint=127.0.0.1:0",
        str(program),
        str(folder),
        json.dumps(settings),
    ]
    return finish([start(command)], folder, seconds)


def by_hand(
    folder: Path,
    ranks: int,
    settings: dict[str, Any],
    *,
    awaited: int | None = None,
    seconds: float = 90.0,
    program: Path = PROGRAM,
) -> Launched:
    """Run the program on so many ranks that are started without a launcher, by the variables alone; the first
    ``awaited`` of them are waited for."""
    port = free_port()
    started = []
    for rank in range(ranks):
        variables = {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(ranks),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }
        started.append(start([sys.executable, str(program), str(folder), json.dumps(settings)], variables))
    return finish(started, folder, seconds, awaited)


def start(command: Sequence[str], variables: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """Start a program in a process group of its own."""
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", **(variables or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finish(
    started: Sequence[subprocess.Popen[str]],
    folder: Path,
    seconds: float,
    awaited: int | None = None,
    ranks: int | None = None,
) -> Launched:
    """Wait for the first of some programs, or all, and return what they wrote; end them when time is over.

    Launchers of several hosts wait for each other for minutes when one has ended first: where ``ranks`` says how
    many programs there are, launchers are waited for only a little longer than those.
    """
    began = time.monotonic()
    output = ""
    try:
        if ranks is not None:
            _wait_for_programs(started, folder, seconds, ranks)
        else:
            for process in started[:awaited]:
                output += process.communicate(timeout=max(1.0, seconds - (time.monotonic() - began)))[0]
    finally:
        for process in started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            output += process.communicate()[0] or ""
    said = {
        int(path.stem.removeprefix("rank-")): json.loads(path.read_text())
        for path in sorted(folder.glob("rank-*.json"))
    }
    return Launched(said, output, time.monotonic() - began)


def _wait_for_programs(
    started: Sequence[subprocess.Popen[str]], folder: Path, seconds: float, ranks: int
) -> None:
    until = time.monotonic() + seconds
    while any(process.poll() is None for process in started) and time.monotonic() < until:
        if len(list(folder.glob("rank-*.json"))) == ranks:
            until = min(until, time.monotonic() + _LAUNCHERS_END)
            ranks = -1
        time.sleep(0.05)


def free_port() -> int:
    """Return a port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
