"""The same plan through Ray Compiled Graphs: the same result, failures as soon, refusals where it does not fit."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flowsched_ray import RayBackend

import flowsched as fs
from flowsched.errors import BackendError, CapacityError, OutputError, ReplicaLostError, WorkerError
from tests.backends.ray import workers

pytestmark = [pytest.mark.timeout(180), pytest.mark.usefixtures("one_machine")]

DIAMOND = fs.Graph(
    "diamond",
    sources=["x"],
    nodes=[
        fs.Node("top", ["x"], replicas=2, batch_size=4, expand=2),
        fs.Node("left", ["top"], replicas_of="top", batch_size=3, method="left"),
        fs.Node("both", ["left", "top", "x"], replicas=1, batch_size=8),
        fs.Node("unread", ["top"], replicas_of="top", method="unread"),
    ],
    outputs=["both", "left"],
)
MODELS = {"top": workers.Grows, "both": workers.add_all}
ONE = fs.Graph("one", ["x"], [fs.Node("a", ["x"], replicas=2, batch_size=2)])
SOON = 10.0


@pytest.fixture(scope="module")
def backend() -> Any:
    """One backend object, whose processes are reused: in each Ray loads torch the first time."""
    made = RayBackend(compiled=True, reuse=True)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _no_thread_is_left_inside_ray() -> Iterator[None]:
    """A thread that is inside Ray when Ray is shut down ends the process."""
    yield
    until = time.monotonic() + 1.0  # those that have been joined may be about to end others of their kind
    while (left := _threads_inside_ray()) and time.monotonic() < until:
        time.sleep(0.01)
    assert not left


def _threads_inside_ray() -> set[str]:
    ours = ("flowsched-ray-reader", "flowsched-ray-load", "unload", "CompiledGraphMonitorThread")
    return {thread.name for thread in threading.enumerate() if thread.name.startswith(ours)}


def _expected(samples: int) -> dict[str, Any]:
    return dict(fs.run(fs.compile(DIAMOND, samples), MODELS, {"x": np.arange(samples)}))


def test_steps_of_several_sizes_return_what_threads_return(backend: RayBackend) -> None:
    with fs.start(DIAMOND, MODELS, backend=backend, max_in_flight=100) as session:
        for samples in (16, 16, 9, 0, 16):
            out = session.run({"x": np.arange(samples)})
            for name, rows in _expected(samples).items():
                assert np.array_equal(out[name], rows)


def test_what_a_step_returned_stays_as_it_is_when_the_next_one_runs(backend: RayBackend) -> None:
    with fs.start(ONE, {"a": workers.Remembers}, backend=backend) as session:
        first = session.run({"x": np.arange(8)})["a"]
        second = session.run({"x": np.arange(100, 108)})["a"]
    assert first.tolist() == list(range(8))
    assert second.tolist() == list(range(100, 108))


def test_rows_larger_than_the_channels_were_made_for_pass(backend: RayBackend) -> None:
    graph = fs.Graph("g", ["x"], [fs.Node("a", ["x"], replicas=2), fs.Node("b", ["a"])])
    models = {"a": partial(workers.widen, width=1_000_000), "b": workers.pass_on}
    with fs.start(graph, models, backend=backend) as session:
        for _ in range(2):
            assert session.run({"x": np.arange(4)})["b"].tolist() == [[n] * 1_000_000 for n in range(4)]


def test_columns_of_all_kinds_pass(backend: RayBackend) -> None:
    inputs: dict[str, Any] = {
        "ids": np.arange(8),
        "text": [f"row {n}" for n in range(8)],
        "ragged": [[n] * n for n in range(8)],
    }
    out = fs.run(fs.compile(ONE, 8), {"a": workers.pass_on}, {"x": inputs}, backend=backend)["a"]
    assert out["text"] == inputs["text"]
    assert out["ragged"] == inputs["ragged"]
    assert np.array_equal(out["ids"], inputs["ids"])


def test_a_worker_that_raises_is_told_at_once_though_others_are_busy(
    backend: RayBackend, tmp_path: Path
) -> None:
    models = {"a": partial(workers.raise_while_others_hold, folder=tmp_path)}
    with fs.start(ONE, models, backend=backend) as session:
        with pytest.raises(WorkerError) as caught:
            session.run({"x": np.arange(4)})
        assert time.time() - (tmp_path / "raised").stat().st_mtime < SOON
    assert isinstance(caught.value.__cause__, ValueError)
    assert (caught.value.node, caught.value.replica, caught.value.call) == ("a", 0, "a.0.0[0:2]")
    assert list(tmp_path.glob("cancelled-*"))  # who asked was told before the end


def test_columns_that_differ_between_replicas_are_refused(backend: RayBackend) -> None:
    with pytest.raises(OutputError, match=r"its output differs from that of a.0.0\[0:2\]"):
        fs.run(
            fs.compile(ONE, 4),
            {"a": workers.other_dtype_in_another_replica},
            {"x": np.arange(4)},
            backend=backend,
        )


def test_an_actor_that_dies_in_a_call_ends_the_step_in_seconds_and_another_session_works(
    backend: RayBackend,
) -> None:
    with fs.start(ONE, {"a": partial(workers.end_process, bad=1)}, backend=backend) as session:
        began = time.monotonic()
        with pytest.raises(ReplicaLostError) as caught:
            session.run({"x": np.arange(4)})
        assert time.monotonic() - began < SOON + 20  # Ray loads torch in the first step
    assert time.monotonic() - began < SOON + 30
    assert (caught.value.node, caught.value.replica) == ("a", 1)
    out = fs.run(fs.compile(ONE, 4), {"a": workers.add_one}, {"x": np.arange(4)}, backend=backend)["a"]
    assert out.tolist() == [1, 2, 3, 4]


def test_an_actor_that_is_killed_between_steps_ends_the_next_one(backend: RayBackend) -> None:
    with fs.start(ONE, {"a": workers.say_pid}, backend=backend) as session:
        pids = session.run({"x": np.arange(4)})["a"].tolist()
        os.kill(pids[3], signal.SIGKILL)
        with pytest.raises(ReplicaLostError) as caught:
            session.run({"x": np.arange(4)})
    assert (caught.value.node, caught.value.replica) == ("a", 1)


def test_closing_in_the_middle_of_a_step_ends_it(backend: RayBackend, tmp_path: Path) -> None:
    session = fs.start(ONE, {"a": partial(workers.hold, folder=tmp_path)}, backend=backend)

    def close() -> None:
        while not list(tmp_path.glob("held-*")):
            time.sleep(0.01)
        session.close()

    closer = threading.Thread(target=close)
    closer.start()
    with pytest.raises(fs.errors.SessionError, match="closed in the middle of step 0"):
        session.run({"x": np.arange(4)})
    closer.join(20)
    assert not closer.is_alive()


def test_a_plan_that_must_be_held_back_is_refused(backend: RayBackend) -> None:
    with pytest.raises(CapacityError, match=r"node 'a' has 20 calls, of which 8 may be in flight"):
        fs.run(fs.compile(ONE, 40), {"a": workers.pass_on}, {"x": np.arange(40)}, backend=backend)


def test_a_plan_of_more_bytes_than_there_may_be_is_refused() -> None:
    with pytest.raises(CapacityError, match="max_bytes is 10"):
        fs.run(
            fs.compile(ONE, 4),
            {"a": workers.pass_on},
            {"x": np.arange(4)},
            backend="ray",
            compiled=True,
            max_bytes=10,
        )


def test_what_compiled_graphs_cannot_do_is_refused_before_anything_starts() -> None:
    with pytest.raises(BackendError, match=r"max_restarts is 1 and compiled is True"):
        RayBackend(compiled=True, max_restarts=1)
    with pytest.raises(BackendError, match=r"lacks 'observer'"):
        fs.start(ONE, {"a": workers.pass_on}, backend="ray", compiled=True, observer=print)
    graph = fs.Graph("g", ["x"], [fs.Node("a", ["x"]), fs.Node("b", ["x"], after=["a"])])
    with pytest.raises(BackendError, match=r"lacks 'after'"):
        fs.start(graph, {"a": workers.pass_on, "b": workers.pass_on}, backend="ray", compiled=True)
