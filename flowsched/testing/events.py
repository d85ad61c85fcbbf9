"""An observer is told of everything once, in the order in which it happened."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowsched as fs
from flowsched.backend import Feature
from flowsched.errors import BuildError, WorkerError
from flowsched.events import CallEnded, Event, ReplicaBuilt, StepEnded, StepFailed, StepStarted
from flowsched.testing.base import Suite, needs
from flowsched.testing.workers import failing, rows
from flowsched.testing.workers import meeting as meetings

_CHAIN = fs.Graph(
    "chain",
    sources=["x"],
    nodes=[
        fs.Node("policy", ["x"], replicas=2, batch_size=3),
        fs.Node("score", ["policy"], replicas=3, batch_size=2),
    ],
)
_MODELS: dict[str, Any] = {"policy": rows.add_one, "score": rows.add_one_late}
_GRPO = fs.Graph(
    "grpo",
    sources=["x"],
    nodes=[
        fs.Node("policy", ["x"], replicas=2, batch_size=3, expand=2),
        fs.Node("score", ["policy"], replicas=3, batch_size=4),
        fs.Node("again", ["score"], replicas_of="score", batch_size=2),
    ],
)
_GRPO_MODELS: dict[str, Any] = {"policy": partial(rows.repeat, times=2), "score": rows.add_one}
_ONE = fs.Graph("one", ["x"], [fs.Node("a", ["x"], replicas=2, batch_size=1)])


def _of(events: list[Event], kind: type[Any]) -> list[Any]:
    return [event for event in events if type(event) is kind]


def _assert_totals_are_exact(plan: fs.Plan, events: list[Event], rows_read: dict[str, int]) -> None:
    (started,) = _of(events, StepStarted)
    assert started.calls == {node.name: len(node) for node in plan}
    assert started.rows == rows_read
    ended = _of(events, CallEnded)
    expected = [(node.name, call.replica, call.position) for node in plan for call in node]
    assert Counter((event.node, event.replica, event.position) for event in ended) == Counter(expected)
    for name, count in rows_read.items():
        assert sum(event.rows for event in ended if event.node == name) == count
    assert all(event.seconds >= 0 for event in ended)


@needs(Feature.OBSERVER)
class EventTests(Suite):
    """What an observer is told."""

    def test_totals_are_exact_and_each_call_ends_once(self) -> None:
        events: list[Event] = []
        plan = fs.compile(_CHAIN, 10)
        self.run_plan(plan, _MODELS, {"x": np.arange(10)}, observer=events.append)
        _assert_totals_are_exact(plan, events, {"policy": 10, "score": 10})

    @needs(Feature.ROWS, Feature.SHARED_REPLICAS)
    def test_totals_are_exact_where_rows_become_several_and_replicas_are_shared(self) -> None:
        events: list[Event] = []
        plan = fs.compile(_GRPO, 10)
        self.run_plan(plan, _GRPO_MODELS, {"x": np.arange(10)}, observer=events.append)
        _assert_totals_are_exact(plan, events, {"policy": 10, "score": 20, "again": 20})

    def test_the_replicas_are_told_first_and_each_step_between_its_start_and_its_end(self) -> None:
        events: list[Event] = []
        with self.start(_CHAIN, _MODELS, observer=events.append) as session:
            for samples in (10, 0, 10):
                session.run({"x": np.arange(samples)})
        built, steps = events[:5], events[5:]
        assert {type(event) for event in built} == {ReplicaBuilt}
        assert sorted((event.node, event.replica) for event in _of(built, ReplicaBuilt)) == [
            *(("policy", replica) for replica in range(2)),
            *(("score", replica) for replica in range(3)),
        ]
        calls = fs.compile(_CHAIN, 10).table.calls
        kinds = [StepStarted, *[CallEnded] * calls, StepEnded]
        assert [type(event) for event in steps] == [*kinds, StepStarted, StepEnded, *kinds]
        numbers = [event.step for event in steps if not isinstance(event, ReplicaBuilt)]
        assert numbers == [0] * (calls + 2) + [1] * 2 + [2] * (calls + 2)

    def test_the_calls_of_a_replica_are_told_in_the_order_of_its_queue(self) -> None:
        events: list[Event] = []
        self.run(_CHAIN, _MODELS, {"x": np.arange(30)}, observer=events.append)
        for node in _CHAIN:
            for replica in range(node.replicas):
                ended = [e for e in _of(events, CallEnded) if (e.node, e.replica) == (node.name, replica)]
                assert [event.position for event in ended] == list(range(len(ended)))

    def test_a_call_is_told_before_those_that_read_it(self) -> None:
        events: list[Event] = []
        plan = fs.compile(_CHAIN, 30)
        self.run_plan(plan, _MODELS, {"x": np.arange(30)}, observer=events.append)
        at = {f"{e.node}.{e.replica}.{e.position}": at for at, e in enumerate(_of(events, CallEnded))}
        for call in plan["score"]:
            for fragment in call.feeds[0].fragments:
                assert at[fragment.producer] < at[call.name]

    def test_a_failed_step_is_told_as_failed_with_the_error_that_is_raised(self) -> None:
        events: list[Event] = []
        models = {"a": partial(failing.raise_at, bad=3)}
        with pytest.raises(WorkerError) as caught:
            self.run(_ONE, models, {"x": np.arange(8)}, observer=events.append)
        assert events[-1] == StepFailed(0, caught.value)
        assert not _of(events, StepEnded)

    def test_nothing_is_told_after_a_failure_though_other_replicas_go_on(self, meeting: Path) -> None:
        events: list[Event] = []
        models = {"a": partial(meetings.raise_when_others_are_busy, folder=meeting)}
        with self.start(_ONE, models, observer=events.append) as session:
            with pytest.raises(WorkerError):
                session.run({"x": np.arange(4)})
            meetings.release(meeting)
        assert type(events[-1]) is StepFailed

    def test_nothing_is_told_after_a_failed_start(self, meeting: Path) -> None:
        events: list[Event] = []
        models = {"a": partial(meetings.FailsWhileOthersBuild, folder=meeting)}
        with pytest.raises(BuildError):
            self.start(_ONE, models, observer=events.append)
        meetings.release(meeting)
        assert events == []
