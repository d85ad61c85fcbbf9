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
from flowsched.backend import Feature
from flowsched.errors import InputError, PlanError, SessionError, WorkerError
from flowsched.testing.base import Suite, needs
from flowsched.testing.comparing import assert_same
from flowsched.testing.workers import failing, rows
from flowsched.testing.workers import meeting as meetings

_GRAPH = fs.Graph(
    "two",
    sources=["x"],
    nodes=[fs.Node("a", ["x"], replicas=3, batch_size=2), fs.Node("b", ["x"], replicas=2)],
)
_SHARED: dict[str, Any] = {"a": rows.Shared, "b": rows.Shared}
_ONE = fs.Graph("one", ["x"], [fs.Node("a", ["x"], replicas=2, batch_size=2)])
_ADD: dict[str, Any] = {"a": rows.add_one}


class SessionTests(Suite):
    """From ``start`` to ``close``."""

    def test_constructors_are_called_once_a_replica_for_steps_of_any_size(self, meeting: Path) -> None:
        built: dict[str, set[str]] = {"a": set(), "b": set()}
        models = {"a": partial(rows.Shared, folder=meeting), "b": rows.Shared}
        with self.start(_GRAPH, models) as session:
            for samples in [24, 0, 1, 24, 7, 0, 100, 24]:
                out = session.run({"x": np.arange(samples)})
                for name in out:
                    built[name] |= set(out[name]["token"] if samples else [])
        assert {name: len(tokens) for name, tokens in built.items()} == {"a": 3, "b": 2}
        assert meetings.arrivals(meeting, "built") == 3, "none is built in vain"

    def test_a_replica_keeps_its_state_from_step_to_step(self) -> None:
        with self.start(_GRAPH, _SHARED) as session:
            for step in range(1, 4):
                assert session.run({"x": np.arange(4)})["b"]["calls"].tolist() == [step] * 4

    def test_a_constructor_learns_its_place(self) -> None:
        with self.start(_GRAPH, _SHARED) as session:
            out = session.run({"x": np.arange(12)})
        assert set(out["a"]["replica"].tolist()) == {0, 1, 2}
        assert set(out["a"]["replicas"].tolist()) == {3}
        assert set(out["a"]["owner"]) == {"a"}

    def test_running_a_plan_once_builds_only_the_replicas_that_it_uses(self, meeting: Path) -> None:
        graph = fs.Graph("wide", ["x"], [fs.Node("a", ["x"], replicas=8, batch_size=1)])
        self.run(graph, {"a": partial(meetings.Marked, folder=meeting)}, {"x": np.arange(3)})
        assert meetings.arrivals(meeting, "built") == 3

    def test_replicas_are_built_side_by_side(self, meeting: Path) -> None:
        model = partial(meetings.MeetsWhileBuilt, folder=meeting, seconds=2 * self.at_once)
        with self.start(_ONE, {"a": model}) as session:
            assert session.run({"x": np.arange(4)})["a"] == [True] * 4

    def test_a_plan_made_beforehand_can_be_run_in_a_session(self) -> None:
        plan = fs.compile(_ONE, 5)
        with self.start(_ONE, _ADD) as session:
            for _ in range(2):
                assert_same(session.run_plan(plan, {"x": np.arange(5)})["a"], np.arange(5) + 1)

    def test_a_plan_of_another_graph_is_refused_and_the_session_goes_on(self) -> None:
        other = fs.Graph("one", ["x"], [fs.Node("a", ["x"], replicas=3, batch_size=2)])
        with self.start(_ONE, _ADD) as session:
            with pytest.raises(PlanError, match="made for graph 'one', which is not the session's"):
                session.run_plan(fs.compile(other, 5), {"x": np.arange(5)})
            assert_same(session.run({"x": np.arange(5)})["a"], np.arange(5) + 1)

    def test_wrong_inputs_are_refused_and_the_session_goes_on(self) -> None:
        with self.start(_ONE, _ADD) as session:
            for wrong in ({}, {"x": None}, {"y": np.arange(3)}, {"x": np.arange(3), "y": np.arange(3)}):
                with pytest.raises(InputError):
                    session.run(wrong)
            with pytest.raises(InputError, match="they have 4 rows, the plan 3"):
                session.run_plan(fs.compile(_ONE, 3), {"x": np.arange(4)})
            assert_same(session.run({"x": np.arange(3)})["a"], np.arange(3) + 1)

    @needs(Feature.ROWS)
    def test_sizes_that_cannot_be_planned_are_refused_and_the_session_goes_on(self) -> None:
        graph = fs.Graph("pairs", ["x"], [fs.Node("a", ["x"], replicas=2, collapse=2)])
        with self.start(graph, {"a": partial(rows.sum_groups, size=2)}) as session:
            with pytest.raises(PlanError):
                session.run({"x": np.arange(3)})
            assert session.run({"x": np.arange(4)})["a"].tolist() == [1, 5]

    def test_closing_twice_does_nothing_the_second_time(self) -> None:
        session = self.start(_ONE, _ADD)
        session.close()
        session.close()
        with session:
            pass
        assert repr(session) == "<Session of one: over: it was closed>"

    def test_a_closed_session_says_that_it_is_over(self) -> None:
        session = self.start(_ONE, _ADD)
        session.close()
        with pytest.raises(SessionError, match=r"over: it was closed. Start another one with fs.start"):
            session.run({"x": np.arange(3)})

    def test_a_session_is_over_after_a_step_of_it_failed(self) -> None:
        with self.start(_ONE, {"a": partial(failing.raise_at, bad=5)}) as session:
            session.run({"x": np.arange(4)})
            with pytest.raises(WorkerError):
                session.run({"x": np.arange(8)})
            with pytest.raises(SessionError, match="over: step 1 failed with WorkerError"):
                session.run({"x": np.arange(4)})
        assert "step 1 failed with WorkerError" in repr(session)

    def test_a_session_runs_one_step_at_a_time(self, meeting: Path) -> None:
        found: list[fs.Outputs] = []
        with self.start(_ONE, {"a": partial(meetings.hold, folder=meeting)}) as session:
            other = threading.Thread(target=lambda: found.append(session.run({"x": np.arange(4)})))
            other.start()
            meetings.wait_for_arrivals(meeting, "held", 2)
            with pytest.raises(SessionError, match="running a step"):
                session.run({"x": np.arange(4)})
            meetings.release(meeting)
            other.join()
            assert_same(found[0]["a"], np.arange(4))
            assert_same(session.run({"x": np.arange(4)})["a"], np.arange(4))

    def test_closing_in_the_middle_of_a_step_ends_the_step_at_once(self, meeting: Path) -> None:
        session = self.start(_ONE, {"a": partial(meetings.hold, folder=meeting)})

        def close() -> None:
            meetings.wait_for_arrivals(meeting, "held", 2)
            session.close()

        closing = threading.Thread(target=close)
        closing.start()
        with pytest.raises(SessionError, match="closed in the middle of step 0"):
            session.run({"x": np.arange(4)})
        closing.join()
        with pytest.raises(SessionError, match="it was closed"):
            session.run({"x": np.arange(4)})

    def test_closing_at_any_moment_ends_a_step_or_comes_too_late(self) -> None:
        for attempt in range(self.examples):
            session = self.start(_ONE, {"a": rows.add_one_late})
            closing = threading.Timer(0.008 * attempt / self.examples, session.close)
            closing.start()
            with contextlib.suppress(SessionError):
                assert_same(session.run({"x": np.arange(8)})["a"], np.arange(1, 9))
            closing.join()
            with pytest.raises(SessionError, match="it was closed"):
                session.run({"x": np.arange(8)})

    def test_sessions_of_one_graph_do_not_know_of_each_other(self) -> None:
        with (
            self.start(_ONE, {"a": rows.Shared}) as first,
            self.start(_ONE, {"a": rows.Shared}) as second,
        ):
            tokens = [set(session.run({"x": np.arange(4)})["a"]["token"]) for session in (first, second)]
        assert len(tokens[0] | tokens[1]) == 4

    def test_a_forgotten_session_ends_its_replicas(self) -> None:
        session = self.start(_ONE, _ADD)
        session.run({"x": np.arange(4)})
        del session  # what is left of it is looked for after each test
