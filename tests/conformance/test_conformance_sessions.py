"""Replicas are built once and serve steps of any size, until the session is over."""

from __future__ import annotations

import contextlib
import threading
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowsched as fs
from flowsched.errors import InputError, PlanError, SessionError, WorkerError
from tests.comparing import assert_same
from tests.conformance import odd_workers as odd
from tests.conformance import row_workers as rows

GRAPH = fs.Graph(
    "two",
    sources=["x"],
    nodes=[fs.Node("a", ["x"], replicas=3, batch_size=2), fs.Node("b", ["x"], replicas=2)],
)
SHARED = {"a": rows.Shared, "b": rows.Shared}
ONE = fs.Graph("one", ["x"], [fs.Node("a", ["x"], replicas=2, batch_size=2)])


def test_constructors_are_called_once_a_replica_for_steps_of_any_size(backend: str) -> None:
    built: dict[str, set[str]] = {"a": set(), "b": set()}
    with fs.start(GRAPH, SHARED, backend=backend) as session:
        for samples in [24, 0, 1, 24, 7, 0, 100, 24]:
            out = session.run({"x": np.arange(samples)})
            for name in out:
                built[name] |= set(out[name]["token"] if samples else [])
    assert {name: len(tokens) for name, tokens in built.items()} == {"a": 3, "b": 2}


def test_a_replica_keeps_its_state_from_step_to_step(backend: str) -> None:
    with fs.start(GRAPH, {"a": rows.Shared, "b": rows.Shared}, backend=backend) as session:
        for step in range(1, 4):
            assert session.run({"x": np.arange(4)})["b"]["calls"].tolist() == [step] * 4


def test_a_constructor_learns_its_place(backend: str) -> None:
    with fs.start(GRAPH, SHARED, backend=backend) as session:
        out = session.run({"x": np.arange(12)})
    assert set(out["a"]["replica"].tolist()) == {0, 1, 2}
    assert set(out["a"]["replicas"].tolist()) == {3}
    assert set(out["a"]["owner"]) == {"a"}


def test_running_a_plan_once_builds_only_the_replicas_that_it_uses(backend: str, tmp_path: Path) -> None:
    graph = fs.Graph("wide", ["x"], [fs.Node("a", ["x"], replicas=8, batch_size=1)])
    models = {"a": partial(Marked, folder=tmp_path)}
    fs.run(fs.compile(graph, 3), models, {"x": np.arange(3)}, backend=backend)
    assert len(list(tmp_path.glob("built-*"))) == 3


class Marked:
    """Leaves a file for each replica that is built."""

    def __init__(self, folder: Path) -> None:
        odd.arrive(folder, "built")

    def __call__(self, numbers: Any) -> Any:
        return numbers


def test_a_plan_made_beforehand_can_be_run_in_a_session(backend: str) -> None:
    plan = fs.compile(ONE, 5)
    with fs.start(ONE, {"a": rows.add_one}, backend=backend) as session:
        for _ in range(2):
            assert_same(session.run_plan(plan, {"x": np.arange(5)})["a"], np.arange(5) + 1)


def test_a_plan_of_another_graph_is_refused_and_the_session_goes_on(backend: str) -> None:
    other = fs.Graph("one", ["x"], [fs.Node("a", ["x"], replicas=3, batch_size=2)])
    with fs.start(ONE, {"a": rows.add_one}, backend=backend) as session:
        with pytest.raises(PlanError, match="made for graph 'one', which is not the session's"):
            session.run_plan(fs.compile(other, 5), {"x": np.arange(5)})
        assert_same(session.run({"x": np.arange(5)})["a"], np.arange(5) + 1)


def test_wrong_inputs_are_refused_and_the_session_goes_on(backend: str) -> None:
    with fs.start(ONE, {"a": rows.add_one}, backend=backend) as session:
        for wrong in ({}, {"x": None}, {"y": np.arange(3)}, {"x": np.arange(3), "y": np.arange(3)}):
            with pytest.raises(InputError):
                session.run(wrong)
        with pytest.raises(InputError, match="they have 4 rows, the plan 3"):
            session.run_plan(fs.compile(ONE, 3), {"x": np.arange(4)})
        assert_same(session.run({"x": np.arange(3)})["a"], np.arange(3) + 1)


def test_sizes_that_cannot_be_planned_are_refused_and_the_session_goes_on(backend: str) -> None:
    graph = fs.Graph("pairs", ["x"], [fs.Node("a", ["x"], replicas=2, collapse=2)])
    with fs.start(graph, {"a": partial(rows.sum_groups, size=2)}, backend=backend) as session:
        with pytest.raises(PlanError):
            session.run({"x": np.arange(3)})
        assert session.run({"x": np.arange(4)})["a"].tolist() == [1, 5]


def test_closing_twice_does_nothing_the_second_time(backend: str) -> None:
    session = fs.start(ONE, {"a": rows.add_one}, backend=backend)
    session.close()
    session.close()
    with session:
        pass
    assert repr(session) == "<Session of one: over: it was closed>"


def test_a_closed_session_says_that_it_is_over(backend: str) -> None:
    session = fs.start(ONE, {"a": rows.add_one}, backend=backend)
    session.close()
    with pytest.raises(SessionError, match=r"over: it was closed. Start another one with fs.start"):
        session.run({"x": np.arange(3)})


def test_a_session_is_over_after_a_step_of_it_failed(backend: str) -> None:
    with fs.start(ONE, {"a": partial(odd.raise_at, bad=5)}, backend=backend) as session:
        session.run({"x": np.arange(4)})
        with pytest.raises(WorkerError):
            session.run({"x": np.arange(8)})
        with pytest.raises(SessionError, match="over: step 1 failed with WorkerError"):
            session.run({"x": np.arange(4)})
    assert "step 1 failed with WorkerError" in repr(session)


@pytest.mark.timeout(60)
def test_a_session_runs_one_step_at_a_time(backend: str, meeting: Path) -> None:
    found: list[fs.Outputs] = []
    with fs.start(ONE, {"a": partial(odd.hold, folder=meeting)}, backend=backend) as session:
        other = threading.Thread(target=lambda: found.append(session.run({"x": np.arange(4)})))
        other.start()
        odd.wait_for_arrivals(meeting, "held", 2)
        with pytest.raises(SessionError, match="running a step"):
            session.run({"x": np.arange(4)})
        (meeting / "release").touch()
        other.join()
        assert_same(found[0]["a"], np.arange(4))
        assert_same(session.run({"x": np.arange(4)})["a"], np.arange(4))


@pytest.mark.timeout(60)
def test_closing_in_the_middle_of_a_step_ends_the_step_at_once(backend: str, meeting: Path) -> None:
    session = fs.start(ONE, {"a": partial(odd.hold, folder=meeting)}, backend=backend)

    def close() -> None:
        odd.wait_for_arrivals(meeting, "held", 2)
        session.close()

    closing = threading.Thread(target=close)
    closing.start()
    with pytest.raises(SessionError, match="closed in the middle of step 0"):
        session.run({"x": np.arange(4)})
    closing.join()
    with pytest.raises(SessionError, match="it was closed"):
        session.run({"x": np.arange(4)})


@pytest.mark.timeout(60)
def test_closing_at_any_moment_ends_a_step_or_comes_too_late(backend: str) -> None:
    for attempt in range(30):
        session = fs.start(ONE, {"a": rows.add_one_late}, backend=backend)
        closing = threading.Timer(attempt * 0.0002, session.close)
        closing.start()
        with contextlib.suppress(SessionError):
            assert_same(session.run({"x": np.arange(8)})["a"], np.arange(1, 9))
        closing.join()
        with pytest.raises(SessionError, match="it was closed"):
            session.run({"x": np.arange(8)})


def test_sessions_of_one_graph_do_not_know_of_each_other(backend: str) -> None:
    with (
        fs.start(ONE, {"a": rows.Shared}, backend=backend) as first,
        fs.start(ONE, {"a": rows.Shared}, backend=backend) as second,
    ):
        tokens = [set(session.run({"x": np.arange(4)})["a"]["token"]) for session in (first, second)]
    assert len(tokens[0] | tokens[1]) == 4


def test_a_forgotten_session_ends_its_replicas(backend: str) -> None:
    session = fs.start(ONE, {"a": rows.add_one}, backend=backend)
    session.run({"x": np.arange(4)})
    del session  # what is left of it is looked for after each test
