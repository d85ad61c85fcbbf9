"""Constructors that hang or die while others are at work."""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flowsched_torch import TorchBackend

import flowsched as fs
from flowsched.errors import BackendError, BuildError, ReplicaLostError
from tests.backends.torch.launching import by_hand

pytestmark = pytest.mark.timeout(110)

PROGRAM = Path(__file__).with_name("refusing_program.py")
GRAPH = fs.Graph("g", ["x"], [fs.Node("a", ["x"], replicas=3), fs.Node("b", ["a"], replicas=2)])
AT_ONCE = 30.0  # seconds; loading torch is most of them


class Slow:
    """Takes its time to be built, or dies of it."""

    def __init__(self, seconds: dict[int, float], context: fs.ReplicaContext, dies: int = -1) -> None:
        if context.replica == dies:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(seconds.get(context.replica, 0.0))

    def __call__(self, rows: Any) -> Any:
        return rows


def _start(local: TorchBackend, models: dict[str, Any]) -> None:
    with fs.start(GRAPH, models, backend=local) as session:
        session.run({"x": np.arange(4)})


def test_replicas_that_are_not_built_in_time_are_named() -> None:
    backend = TorchBackend(start="local", ranks=4, build_timeout=3.0)
    models = {"a": partial(Slow, {1: 60.0, 2: 60.0}), "b": partial(Slow, {})}
    began = time.monotonic()
    with pytest.raises(BuildError, match=r"a\.1 on rank 1, a\.2 on rank 2$") as told:
        _start(backend, models)
    assert time.monotonic() - began < AT_ONCE
    assert (told.value.node, told.value.replica) == ("a", 1)
    assert isinstance(told.value.__cause__, TimeoutError)


def test_a_replica_that_waits_behind_another_is_counted() -> None:
    backend = TorchBackend(start="local", ranks=1, build_timeout=3.0)
    with pytest.raises(BuildError, match=r"a\.1 on rank 0, and 3 more wait for these on their ranks"):
        _start(backend, {"a": partial(Slow, {1: 60.0}), "b": partial(Slow, {})})


def test_replicas_that_are_built_in_time_serve_beyond_it() -> None:
    backend = TorchBackend(start="local", ranks=2, build_timeout=20.0)
    models = {"a": partial(Slow, {0: 0.2}), "b": partial(Slow, {})}
    with fs.start(GRAPH, models, backend=backend) as session:
        assert session.run({"x": np.arange(4)})["b"].tolist() == [0, 1, 2, 3]


def test_by_default_a_constructor_has_as_long_as_it_takes() -> None:
    backend = TorchBackend(start="local", timeout=1.0)  # which is for ranks that do not answer
    _start(backend, {"a": partial(Slow, {0: 3.0}), "b": partial(Slow, {})})


@pytest.mark.parametrize("seconds", ["soon", -1, True, float("inf")])
def test_a_build_timeout_is_a_time(seconds: Any) -> None:
    with pytest.raises(BackendError, match=r"build_timeout is .*Give seconds, 0 to 1,000,000"):
        TorchBackend(build_timeout=seconds)


def test_a_rank_that_dies_while_others_build_is_named_at_once(local: TorchBackend) -> None:
    began = time.monotonic()
    with pytest.raises(ReplicaLostError, match=r"node 'a', replica 2.*SIGKILL"):
        _start(local, {"a": partial(Slow, {0: 60.0, 1: 60.0}, dies=2), "b": partial(Slow, {0: 60.0})})
    assert time.monotonic() - began < AT_ONCE


def test_a_rank_of_one_program_that_dies_while_another_builds_is_named_where_none_is_busy(
    tmp_path: Path,
) -> None:
    settings = {"kind": "build", "dies": 1, "slow": 2}
    said = by_hand(tmp_path, 3, settings, awaited=1, program=PROGRAM).said
    assert said[0]["errors"][0][1] == "ReplicaLostError"
    assert "node 'a', replica 1" in said[0]["errors"][0][2]
    assert said[0]["seconds"] < AT_ONCE


def test_a_rank_of_one_program_that_is_not_built_in_time_is_named_on_the_others(tmp_path: Path) -> None:
    settings = {"kind": "build", "slow": 2, "options": {"build_timeout": 3.0}}
    said = by_hand(tmp_path, 3, settings, awaited=2, program=PROGRAM).said
    for rank in (0, 1):
        assert said[rank]["errors"][0][1] == "BuildError"
        assert "Still being built: a.2 on rank 2" in said[rank]["errors"][0][2]
        assert said[rank]["seconds"] < AT_ONCE
