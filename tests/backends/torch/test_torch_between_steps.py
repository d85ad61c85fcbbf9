"""What befalls local ranks while no step runs, and what an observer raises, is told as what it is."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flowsched_torch import TorchBackend

import flowsched as fs
from flowsched.errors import ReplicaLostError
from flowsched.events import CallEnded, Event, ReplicaBuilt
from tests.backends.torch import workers

pytestmark = pytest.mark.timeout(110)

GRAPH = fs.Graph(
    "g", ["x"], [fs.Node("a", ["x"], replicas=3, batch_size=2), fs.Node("b", ["a"], replicas=2)], ["a", "b"]
)
MODELS: dict[str, Any] = {"a": workers.say_process, "b": workers.pass_on}


def _is_there(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def _wait_until_gone(pids: list[int]) -> None:
    until = time.monotonic() + 20.0
    while left := [pid for pid in pids if _is_there(pid)]:
        assert time.monotonic() < until, f"processes are left: {left}"
        time.sleep(0.02)


def _run_steps(session: fs.Session, steps: int) -> list[int]:
    """Run steps and return the processes of node a, that of replica 0 first."""
    for _ in range(steps):
        out = session.run({"x": np.arange(6)})["a"]
    return [int(pid) for pid in out[::2]]


@pytest.mark.parametrize("rows", [6, 5])
@pytest.mark.parametrize("steps", [1, 2])
def test_a_rank_that_was_killed_between_steps_is_named_by_the_next_one(
    local: TorchBackend, steps: int, rows: int
) -> None:
    session = fs.start(GRAPH, MODELS, backend=local)
    pids = _run_steps(session, steps)
    os.kill(pids[1], signal.SIGKILL)
    _wait_until_gone([pids[1]])
    with pytest.raises(ReplicaLostError, match=r"node 'a', replica 1.*signal 9 \(SIGKILL\)"):
        session.run({"x": np.arange(rows)})
    session.close()
    _wait_until_gone(pids)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_session_with_a_rank_that_was_killed_closes_quietly_and_leaves_none(
    local: TorchBackend, steps: int
) -> None:
    session = fs.start(GRAPH, MODELS, backend=local)
    pids = _run_steps(session, steps)
    os.kill(pids[1], signal.SIGKILL)
    _wait_until_gone([pids[1]])
    session.close()
    _wait_until_gone(pids)


def _raise_at(kind: type[Event], error: Exception) -> Callable[[Event], None]:
    def observe(event: Event) -> None:
        if isinstance(event, kind):
            raise error

    return observe


@pytest.mark.parametrize("kind", [ReplicaBuilt, CallEnded])
def test_a_runtime_error_of_an_observer_is_not_taken_for_a_lost_connection(
    local: TorchBackend, kind: type[Event]
) -> None:
    plan = fs.compile(GRAPH, 40)
    for own in (RuntimeError("observer's own"), NotImplementedError("observer's own")):
        with pytest.raises(type(own), match=r"^observer's own$"):
            fs.run(plan, MODELS, {"x": np.arange(40)}, backend=local, observer=_raise_at(kind, own))


@pytest.mark.parametrize("kind", [ReplicaBuilt, CallEnded])
def test_nor_is_one_where_every_rank_runs_the_program(
    monkeypatch: pytest.MonkeyPatch, kind: type[Event]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    for name, value in (("RANK", 0), ("WORLD_SIZE", 1), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", port)):
        monkeypatch.setenv(name, str(value))
    plan, backend = fs.compile(GRAPH, 40), TorchBackend(start="torchrun")
    for own in (RuntimeError("observer's own"), NotImplementedError("observer's own")):
        with pytest.raises(type(own), match=r"^observer's own$"):
            fs.run(plan, MODELS, {"x": np.arange(40)}, backend=backend, observer=_raise_at(kind, own))
