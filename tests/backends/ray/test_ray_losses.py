"""Replicas that die and nodes that go: a step ends with the cause in seconds, or goes on where that is asked."""

from __future__ import annotations

import os
import signal
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowsched as fs
from flowsched.errors import ReplicaLostError
from tests.backends.ray import workers

ray: Any = pytest.importorskip("ray")

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("cluster")]

ONE = fs.Graph("one", ["x"], [fs.Node("a", ["x"], replicas=2, batch_size=2)])
SOON = 10.0


def test_a_process_that_ends_itself_is_told_with_its_call_and_its_exit_code() -> None:
    began = time.monotonic()
    with pytest.raises(ReplicaLostError) as caught:
        fs.run(
            fs.compile(ONE, 8), {"a": partial(workers.end_process, bad=1)}, {"x": np.arange(8)}, backend="ray"
        )
    assert time.monotonic() - began < SOON + 10
    error = caught.value
    assert (error.node, error.replica, error.call, error.samples) == ("a", 1, "a.1.0[2:4]", (2, 4))
    assert "the replica was lost" in str(error)
    assert "exit" in str(error).lower()


def test_a_process_that_is_killed_between_steps_ends_the_next_one() -> None:
    with fs.start(ONE, {"a": workers.say_pid}, backend="ray") as session:
        pids = session.run({"x": np.arange(8)})["a"].tolist()
        os.kill(pids[0], signal.SIGKILL)
        with pytest.raises(ReplicaLostError) as caught:
            session.run({"x": np.arange(8)})
    assert (caught.value.node, caught.value.replica) == ("a", 0)


def test_a_constructor_that_ends_the_process_fails_the_start() -> None:
    with pytest.raises(ReplicaLostError) as caught:
        fs.start(ONE, {"a": workers.EndsWhileBuilt}, backend="ray")
    assert caught.value.call is None
    assert "Its constructor ended the process" in str(caught.value)


def test_a_lost_replica_is_built_again_and_its_call_run_again_where_that_is_asked_for(
    tmp_path: Path,
) -> None:
    models = {"a": partial(workers.CountsBuilds, folder=tmp_path)}
    with fs.start(ONE, models, backend="ray", max_restarts=1, max_task_retries=1) as session:
        for _ in range(2):
            assert session.run({"x": np.arange(8)})["a"].tolist() == list(range(8))
    built = [len(list(tmp_path.glob(f"built-{replica}-*"))) for replica in (0, 1)]
    assert built == [2, 1]


def test_a_lost_replica_fails_its_step_where_calls_are_not_to_be_run_again(
    tmp_path: Path,
) -> None:
    models = {"a": partial(workers.CountsBuilds, folder=tmp_path)}
    with (
        fs.start(ONE, models, backend="ray", max_restarts=1) as session,
        pytest.raises(ReplicaLostError, match=r"node 'a', replica 0"),
    ):
        session.run({"x": np.arange(8)})


def test_the_loss_of_a_node_in_the_middle_of_a_step_ends_it_with_the_cause(
    cluster: Any, tmp_path: Path
) -> None:
    extra = cluster.add_node(num_cpus=1, resources={"doomed": 4})
    graph = fs.Graph(
        "g", ["x"], [fs.Node("a", ["x"], replicas=2), fs.Node("b", ["a"], replicas=2), fs.Node("c", ["b"])]
    )
    models = {"a": workers.add_one, "b": partial(workers.hold, folder=tmp_path), "c": workers.pass_on}
    lost: list[float] = []

    def remove_node() -> None:
        while len(list(tmp_path.glob("held-*"))) < 2:
            time.sleep(0.02)
        lost.append(time.monotonic())
        cluster.remove_node(extra, allow_graceful=False)

    remover = threading.Thread(target=remove_node)
    with fs.start(graph, models, backend="ray", resources={"b": {"doomed": 1}}) as session:
        remover.start()
        with pytest.raises(ReplicaLostError) as caught:
            session.run({"x": np.arange(8)})
        took = time.monotonic() - lost[0]
    remover.join()
    assert took < SOON
    assert caught.value.node == "b"
    assert "node" in str(caught.value)


def test_nothing_is_left_after_failures() -> None:
    with pytest.raises(ReplicaLostError):
        fs.run(
            fs.compile(ONE, 8), {"a": partial(workers.end_process, bad=0)}, {"x": np.arange(8)}, backend="ray"
        )
    until = time.monotonic() + 10
    while (alive := _actors_alive()) and time.monotonic() < until:
        time.sleep(0.1)
    assert alive == []


def _actors_alive() -> list[Any]:
    return [actor for actor in ray._private.state.actors().values() if actor["State"] == "ALIVE"]
