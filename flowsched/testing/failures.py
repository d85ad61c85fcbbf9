"""A failure surfaces at once, as itself, with its place; and nothing is left behind."""

from __future__ import annotations

import time
import traceback
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowsched as fs
from flowsched.backend import Feature
from flowsched.errors import BuildError, WorkerError
from flowsched.testing.base import Suite, needs
from flowsched.testing.results import one_node
from flowsched.testing.workers import failing, rows
from flowsched.testing.workers import meeting as meetings


class FailureTests(Suite):
    """Workers and constructors that raise."""

    def test_a_worker_that_raises_is_told_with_its_place_and_its_own_exception(self) -> None:
        with pytest.raises(WorkerError) as caught:
            self.run(one_node(2, 2), {"a": partial(failing.raise_at, bad=6)}, {"x": np.arange(8)})
        error = caught.value
        assert type(error.__cause__) is failing.UserError
        assert str(error.__cause__) == "6 is bad"
        assert (error.node, error.replica, error.call, error.samples) == ("a", 1, "a.1.1[6:8]", (6, 8))
        for part in ("node 'a'", "replica 1", "a.1.1[6:8]", "samples 6, 7", "UserError: 6 is bad"):
            assert part in str(error)

    def test_the_traceback_of_the_worker_is_shown(self) -> None:
        with pytest.raises(WorkerError) as caught:
            self.run(one_node(2, 2), {"a": partial(failing.raise_at, bad=6)}, {"x": np.arange(8)})
        shown = "".join(traceback.format_exception(caught.value))
        for part in (
            failing.__file__,
            "in raise_at",
            'raise UserError(f"{bad} is bad")',
            "UserError: 6 is bad",
        ):
            assert part in shown

    def test_what_caused_the_exception_of_a_worker_is_shown_too(self) -> None:
        with pytest.raises(WorkerError) as caught:
            self.run(one_node(1, 4), {"a": failing.raise_from_a_cause}, {"x": np.arange(4)})
        assert type(caught.value.__cause__) is failing.UserError
        shown = "".join(traceback.format_exception(caught.value))
        assert "KeyError: 'weights'" in shown

    @needs(Feature.ROWS)
    def test_the_samples_of_an_error_are_those_of_the_step_where_rows_are_several_a_sample(self) -> None:
        graph = fs.Graph("g", ["x"], [fs.Node("e", ["x"], expand=3), fs.Node("a", ["e"], batch_size=4)])
        models = {"e": partial(rows.repeat, times=3), "a": partial(failing.raise_at, bad=201)}
        with pytest.raises(WorkerError) as caught:
            self.run(graph, models, {"x": np.arange(8)})
        assert (caught.value.call, caught.value.samples) == ("a.0.1[4:8]", (1, 3))

    def test_a_failure_surfaces_at_once_while_others_are_busy(self, meeting: Path) -> None:
        models = {"a": partial(meetings.raise_when_others_are_busy, folder=meeting)}
        with self.start(one_node(4, 1), models) as session:
            began = time.monotonic()
            with pytest.raises(WorkerError) as caught:
                session.run({"x": np.arange(9)})
            assert time.monotonic() - began < self.at_once
        assert type(caught.value.__cause__) is failing.UserError

    def test_a_session_whose_step_failed_ends_at_once_while_others_are_busy(self, meeting: Path) -> None:
        models = {"a": partial(meetings.raise_when_others_are_busy, folder=meeting)}
        session = self.start(one_node(4, 1), models)
        with pytest.raises(WorkerError):
            session.run({"x": np.arange(9)})
        began = time.monotonic()
        session.close()
        assert time.monotonic() - began < self.at_once

    @needs(Feature.CANCELLATION)
    def test_workers_that_ask_learn_that_their_step_has_failed(self, meeting: Path) -> None:
        graph = fs.Graph("two", ["x"], [fs.Node("a", ["x"], replicas=2), fs.Node("b", ["x"])])
        models = {
            "a": partial(meetings.hold_until_cancelled, folder=meeting),
            "b": partial(meetings.raise_when_held, folder=meeting, count=2),
        }
        with pytest.raises(WorkerError, match="node 'b'"):
            self.run(graph, models, {"x": np.arange(4)})
        meetings.wait_for_arrivals(meeting, "cancelled", 2, seconds=self.at_once)
        assert meetings.arrivals(meeting, "cancelled") == 2

    @needs(Feature.CANCELLATION)
    def test_the_first_failure_is_the_one_that_is_raised(self, meeting: Path) -> None:
        models = {"a": partial(meetings.raise_in_turn, folder=meeting)}
        with pytest.raises(WorkerError, match="UserError: first"):
            self.run(one_node(2, 1), models, {"x": np.arange(2)})

    @pytest.mark.parametrize(
        ("worker", "kind"),
        [(failing.exit_at_once, SystemExit), (failing.interrupt_at_once, KeyboardInterrupt)],
    )
    def test_even_exceptions_that_end_programs_are_told_as_failures_of_a_worker(
        self, worker: Any, kind: type[BaseException]
    ) -> None:
        with pytest.raises(WorkerError) as caught:
            self.run(one_node(2, 2), {"a": worker}, {"x": np.arange(8)})
        assert type(caught.value.__cause__) is kind

    def test_a_replica_makes_no_further_call_after_one_that_failed(self, meeting: Path) -> None:
        models = {"a": partial(meetings.raise_at_with_a_mark, bad=2, folder=meeting)}
        with self.start(one_node(1, 2), models) as session:
            with pytest.raises(WorkerError, match="2 is bad"):
                session.run({"x": np.arange(12)})
            time.sleep(0.1)  # whoever goes on would do so now
        assert meetings.arrivals(meeting, "called") == 2

    @pytest.mark.parametrize("bad", [0, 2])
    def test_one_constructor_that_raises_fails_the_start(self, bad: int) -> None:
        with pytest.raises(BuildError) as caught:
            self.start(one_node(4, 2), {"a": partial(failing.FailsToBuild, bad=bad)})
        error = caught.value
        assert type(error.__cause__) is failing.UserError
        assert (error.node, error.replica, error.call, error.samples) == ("a", bad, None, None)
        assert f"building replica {bad} of 4 failed with UserError: the weights are missing" in str(error)
        assert "in __init__" in "".join(traceback.format_exception(error))

    def test_a_constructor_that_raises_is_told_while_others_are_still_at_it(self, meeting: Path) -> None:
        models = {"a": partial(meetings.FailsWhileOthersBuild, folder=meeting)}
        began = time.monotonic()
        with pytest.raises(BuildError):
            self.start(one_node(4, 2), models)
        assert time.monotonic() - began < self.at_once

    @pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
    def test_a_constructor_may_raise_anything(self, kind: type[BaseException]) -> None:
        with pytest.raises(BuildError) as caught:
            self.start(one_node(2, 2), {"a": partial(failing.FailsToBuild, error=kind)})
        assert type(caught.value.__cause__) is kind

    def test_a_failure_deep_in_the_graph_ends_what_waits_for_it(self) -> None:
        graph = fs.Graph(
            "deep",
            sources=["x"],
            nodes=[
                fs.Node("a", ["x"], batch_size=1),
                fs.Node("b", ["a"], replicas=2, batch_size=1),
                fs.Node("c", ["b"], batch_size=None),
                fs.Node("d", ["c", "a"], replicas=3),
            ],
        )
        models = {
            "a": rows.add_one,
            "b": partial(failing.raise_at, bad=20),
            "c": rows.pass_on,
            "d": rows.add,
        }
        with pytest.raises(WorkerError, match="node 'b'"):
            self.run(graph, models, {"x": np.arange(30)})

    @needs(Feature.AFTER)
    def test_a_failure_ends_what_comes_after_it(self) -> None:
        nodes = [fs.Node("a", ["x"], replicas=2), fs.Node("b", ["x"], replicas=2, after=["a"])]
        models = {"a": partial(failing.raise_at, bad=3), "b": rows.add_one}
        with pytest.raises(WorkerError, match="node 'a'"):
            self.run(fs.Graph("after", ["x"], nodes), models, {"x": np.arange(4)})
