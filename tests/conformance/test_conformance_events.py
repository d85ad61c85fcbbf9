"""An observer is told of everything once, in the order in which it happened."""

from __future__ import annotations

import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowsched as fs
from flowsched.errors import BuildError, SessionError, WorkerError
from flowsched.events import CallEnded, Event, ReplicaBuilt, StepEnded, StepFailed, StepStarted
from tests.conformance import odd_workers as odd
from tests.conformance import row_workers as rows

GRAPH = fs.Graph(
    "grpo",
    sources=["x"],
    nodes=[
        fs.Node("policy", ["x"], replicas=2, batch_size=3, expand=2),
        fs.Node("score", ["policy"], replicas=3, batch_size=4),
        fs.Node("again", ["score"], replicas_of="score", batch_size=2),
    ],
)
MODELS: dict[str, Any] = {"policy": partial(rows.repeat, times=2), "score": rows.add_one}
ONE = fs.Graph("one", ["x"], [fs.Node("a", ["x"], replicas=2, batch_size=1)])


def _of(events: list[Event], kind: type[Any]) -> list[Any]:
    return [event for event in events if type(event) is kind]


def test_totals_are_exact_and_each_call_ends_once(backend: str) -> None:
    events: list[Event] = []
    plan = fs.compile(GRAPH, 10)
    fs.run(plan, MODELS, {"x": np.arange(10)}, backend=backend, observer=events.append)
    (started,) = _of(events, StepStarted)
    assert started.calls == {node.name: len(node) for node in plan}
    assert started.rows == {"policy": 10, "score": 20, "again": 20}
    ended = _of(events, CallEnded)
    expected = [(node.name, call.replica, call.position) for node in plan for call in node]
    assert Counter((event.node, event.replica, event.position) for event in ended) == Counter(expected)
    for name, rows_read in started.rows.items():
        assert sum(event.rows for event in ended if event.node == name) == rows_read
    assert all(event.seconds >= 0 for event in ended)


def test_events_come_in_the_order_of_what_happened(backend: str) -> None:
    events: list[Event] = []
    with fs.start(GRAPH, MODELS, backend=backend, observer=events.append) as session:
        for _ in range(2):
            session.run({"x": np.arange(10)})
    assert [type(event) for event in events[:5]] == [ReplicaBuilt] * 5
    assert sorted((event.node, event.replica) for event in _of(events, ReplicaBuilt)) == [
        ("policy", 0),
        ("policy", 1),
        ("score", 0),
        ("score", 1),
        ("score", 2),
    ]
    steps, each = events[5:], (len(events) - 5) // 2
    for number, own in enumerate((steps[:each], steps[each:])):
        assert type(own[0]) is StepStarted
        assert type(own[-1]) is StepEnded
        assert {type(event) for event in own[1:-1]} == {CallEnded}
        assert {event.step for event in own if not isinstance(event, ReplicaBuilt)} == {number}
        for owner in ({"policy"}, {"score", "again"}):
            for replica in range(3):
                queue = [e.position for e in _of(own, CallEnded) if e.node in owner and e.replica == replica]
                assert queue == sorted(queue)


def test_a_call_is_told_before_those_that_read_it(backend: str) -> None:
    events: list[Event] = []
    plan = fs.compile(GRAPH, 10)
    fs.run(plan, MODELS, {"x": np.arange(10)}, backend=backend, observer=events.append)
    at = {f"{e.node}.{e.replica}.{e.position}": at for at, e in enumerate(_of(events, CallEnded))}
    for name in ("score", "again"):
        for call in plan[name]:
            for fragment in call.feeds[0].fragments:
                assert at[fragment.producer] < at[call.name]


def test_a_step_of_no_samples_starts_and_ends(backend: str) -> None:
    events: list[Event] = []
    with fs.start(GRAPH, MODELS, backend=backend, observer=events.append) as session:
        session.run({"x": np.arange(0)})
    assert [type(event) for event in events[5:]] == [StepStarted, StepEnded]


def test_a_failed_step_is_told_as_failed_with_the_error_that_is_raised(backend: str) -> None:
    events: list[Event] = []
    with pytest.raises(WorkerError) as caught:
        fs.run(
            fs.compile(ONE, 8),
            {"a": partial(odd.raise_at, bad=3)},
            {"x": np.arange(8)},
            backend=backend,
            observer=events.append,
        )
    assert events[-1] == StepFailed(0, caught.value)
    assert not _of(events, StepEnded)


def test_nothing_is_told_after_a_failure_though_other_replicas_go_on(backend: str, meeting: Path) -> None:
    events: list[Event] = []
    models = {"a": partial(odd.raise_when_others_are_busy, folder=meeting)}
    with fs.start(ONE, models, backend=backend, observer=events.append) as session:
        with pytest.raises(WorkerError):
            session.run({"x": np.arange(4)})
        (meeting / "release").touch()
    assert type(events[-1]) is StepFailed


def test_nothing_is_told_after_a_failed_start(backend: str, meeting: Path) -> None:
    events: list[Event] = []
    models = {"a": partial(odd.FailsWhileOthersBuild, folder=meeting)}
    with pytest.raises(BuildError):
        fs.start(ONE, models, backend=backend, observer=events.append)
    (meeting / "release").touch()
    assert events == []


class ObserverError(Exception):
    """What an observer of somebody else's raises."""


def _raising_at(*kinds: type[Any]) -> Any:
    def observe(event: Event) -> None:
        if isinstance(event, kinds):
            raise ObserverError(type(event).__name__)

    return observe


@pytest.mark.timeout(30)
@pytest.mark.parametrize("kind", [StepStarted, CallEnded, StepEnded])
def test_what_an_observer_raises_ends_the_session_as_itself(backend: str, kind: type[Any]) -> None:
    with fs.start(ONE, {"a": rows.add_one}, backend=backend, observer=_raising_at(kind)) as session:
        with pytest.raises(ObserverError, match=kind.__name__):
            session.run({"x": np.arange(4)})
        assert "failed with ObserverError" in repr(session)


@pytest.mark.timeout(30)
def test_what_an_observer_raises_while_replicas_are_built_fails_the_start(backend: str) -> None:
    with pytest.raises(ObserverError, match="ReplicaBuilt"):
        fs.start(ONE, {"a": rows.add_one}, backend=backend, observer=_raising_at(ReplicaBuilt))


def test_an_observer_that_fails_at_a_failure_does_not_hide_it(backend: str) -> None:
    with pytest.raises(WorkerError) as caught:
        fs.run(
            fs.compile(ONE, 8),
            {"a": partial(odd.raise_at, bad=3)},
            {"x": np.arange(8)},
            backend=backend,
            observer=_raising_at(StepFailed),
        )
    assert "ObserverError: StepFailed" in caught.value.__notes__[0]


def test_an_observer_is_never_called_by_two_at_once(backend: str) -> None:
    inside: list[int] = []
    most: list[int] = []

    def observe(_: Event) -> None:
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.0005)
        inside.pop()

    graph = fs.Graph("wide", ["x"], [fs.Node("a", ["x"], replicas=8, batch_size=1)])
    with fs.start(graph, {"a": rows.add_one}, backend=backend, observer=observe) as session:
        session.run({"x": np.arange(64)})
    assert len(most) == 8 + 1 + 64 + 1
    assert max(most) == 1


@pytest.mark.timeout(30)
@pytest.mark.parametrize("kind", [StepStarted, CallEnded])
def test_an_observer_may_close_the_session(backend: str, kind: type[Any]) -> None:
    def observe(event: Event) -> None:
        if isinstance(event, kind):
            session.close()

    session = fs.start(ONE, {"a": rows.add_one}, backend=backend, observer=observe)
    with pytest.raises(SessionError, match="closed"):
        session.run({"x": np.arange(40)})
    assert repr(session) == "<Session of one: over: it was closed>"
