"""Ray on this machine alone: started where none is there, left alone where it is, and nothing left behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

pytestmark = pytest.mark.timeout(240)

_ROOT = Path(__file__).parents[3]
_START = """
    import logging, os, threading, time
    os.environ.pop("RAY_ADDRESS", None)
    import numpy as np, ray
    import flowsched as fs
    from flowsched_ray import RayBackend
    from tests.backends.ray import workers
    graph = fs.Graph("one", ["x"], [fs.Node("a", ["x"], replicas=2, batch_size=2), fs.Node("b", ["a"])])
    models = {"a": workers.say_pid, "b": workers.pass_on}
    inputs = {"x": np.arange(8)}

    def gone(pids):
        until = time.monotonic() + 20
        while any(os.path.exists(f"/proc/{pid}/status") and "Z" not in open(f"/proc/{pid}/stat").read().split()[2]
                  for pid in pids) and time.monotonic() < until:
            time.sleep(0.05)
        return time.monotonic() < until
"""


def _run(text: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", dedent(_START) + dedent(text)],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
def test_ray_is_started_for_a_session_and_shut_down_with_the_last_one() -> None:
    said = _run("""
        first = fs.start(graph, models, backend="ray")
        second = fs.start(graph, models, backend="ray")
        pids = {*first.run(inputs)["b"].tolist(), *second.run(inputs)["b"].tolist()}
        first.close()
        print(len(pids), ray.is_initialized(), second.run(inputs)["b"].tolist()[0] in pids)
        second.close()
        print(ray.is_initialized(), gone(pids), [t.name for t in threading.enumerate()])
        print(fs.run(fs.compile(graph, 8), models, inputs, backend="ray")["b"].shape, ray.is_initialized())
    """)
    assert said == "4 True True\nFalse True ['MainThread']\n(8,) False\n"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
def test_a_connection_of_the_users_own_is_used_and_left() -> None:
    said = _run("""
        ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
        out = fs.run(fs.compile(graph, 8), models, inputs, backend="ray")
        print(ray.is_initialized(), gone(set(out["b"].tolist())))
        session = fs.start(graph, models, backend="ray")
        ray.shutdown()
        session.close()  # which has nothing left to end
        print(session)
    """)
    assert said == "True True\n<Session of one: over: it was closed>\n"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
def test_kept_processes_serve_the_next_session_of_the_same_backend_with_nothing_of_the_last() -> None:
    said = _run("""
        ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
        backend = RayBackend(reuse=True)
        first, second = (
            set(fs.run(fs.compile(graph, 8), models, inputs, backend=backend)["b"].tolist()) for _ in range(2)
        )
        others = set(fs.run(fs.compile(graph, 8), models, inputs, backend="ray")["b"].tolist())
        print(first <= second | first and bool(first & second), bool(first & others))
        kept = fs.start(graph, {"a": workers.Counts, "b": workers.pass_on}, backend=backend)
        print(kept.run(inputs)["b"].tolist(), kept.run(inputs)["b"].tolist())
        kept.close()
        print(fs.run(fs.compile(graph, 8), {"a": workers.Counts, "b": workers.pass_on}, inputs,
                     backend=backend)["b"].tolist())
        backend.close()
        print(gone(first | second))
    """)
    first = [1, 1, 1, 1, 2, 2, 2, 2]
    again = [3, 3, 3, 3, 4, 4, 4, 4]
    assert said == f"True False\n{first} {again}\n{first}\nTrue\n"
