"""What Ray itself shows of a failure can be read, and a Ray that the user ends is let go of."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest
from flowsched_ray.actor import CallFailed

from flowsched.backend import pack_error, unpack_error

pytestmark = pytest.mark.timeout(170)


def test_what_ray_shows_of_a_failed_call_is_its_error_in_words() -> None:
    travelled = pickle.loads(pickle.dumps(CallFailed(pack_error(ValueError("no such row")))))
    assert str(travelled) == "ValueError: no such row"
    assert isinstance(unpack_error(travelled.packed), ValueError)


PROGRAM = """
import numpy as np, ray, flowsched as fs

graph = fs.Graph("g", ["x"], [fs.Node("a", ["x"])])
models = {"a": lambda rows: rows + 1}
session = fs.start(graph, models, backend="ray")
ray.shutdown()
session.close()
with fs.start(graph, models, backend="ray") as session:
    print(session.run({"x": np.arange(3)})["a"].tolist(), ray.is_initialized())
print(ray.is_initialized())
"""


def test_after_the_user_has_shut_ray_down_the_next_session_still_ends_its_own() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=160, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:2] == ["[1, 2, 3] True", "False"]
