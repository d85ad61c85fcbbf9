"""Observers that raise, are slow, or close the session."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import Any

import numpy as np
import pytest

import flowsched as fs
from flowsched.backend import Feature
from flowsched.errors import SessionError, WorkerError
from flowsched.events import CallEnded, Event, ReplicaBuilt, StepEnded, StepFailed, StepStarted
from flowsched.testing.base import Suite, needs
from flowsched.testing.workers import failing, rows

_ONE = fs.Graph("one", ["x"], [fs.Node("a", ["x"], replicas=2, batch_size=1)])
_ADD: dict[str, Any] = {"a": rows.add_one}


class ObserverError(Exception):
    """What an observer of somebody else's raises."""


def _raising_at(*kinds: type[Any]) -> Any:
    def observe(event: Event) -> None:
        if isinstance(event, kinds):
            raise ObserverError(type(event).__name__)

    return observe


@needs(Feature.OBSERVER)
class ObserverTests(Suite):
    """What an observer may do."""

    @pytest.mark.parametrize("kind", [StepStarted, CallEnded, StepEnded])
    def test_what_an_observer_raises_ends_the_session_as_itself(self, kind: type[Any]) -> None:
        with self.start(_ONE, _ADD, observer=_raising_at(kind)) as session:
            with pytest.raises(ObserverError, match=kind.__name__):
                session.run({"x": np.arange(4)})
            assert "failed with ObserverError" in repr(session)

    def test_what_an_observer_raises_while_replicas_are_built_fails_the_start(self) -> None:
        with pytest.raises(ObserverError, match="ReplicaBuilt"):
            self.start(_ONE, _ADD, observer=_raising_at(ReplicaBuilt))

    def test_an_observer_that_fails_at_a_failure_does_not_hide_it(self) -> None:
        models = {"a": partial(failing.raise_at, bad=3)}
        with pytest.raises(WorkerError) as caught:
            self.run(_ONE, models, {"x": np.arange(8)}, observer=_raising_at(StepFailed))
        assert any("ObserverError: StepFailed" in note for note in caught.value.__notes__)

    def test_an_observer_is_never_called_by_two_at_once(self) -> None:
        inside: list[int] = []
        most: list[int] = []

        def observe(_: Event) -> None:
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.0005)
            inside.pop()

        replicas = min(8, self.widest)
        graph = fs.Graph("wide", ["x"], [fs.Node("a", ["x"], replicas=replicas, batch_size=1)])
        with self.start(graph, _ADD, observer=observe) as session:
            session.run({"x": np.arange(64)})
        assert len(most) == replicas + 1 + 64 + 1
        assert max(most) == 1

    @pytest.mark.parametrize("kind", [StepStarted, CallEnded])
    def test_an_observer_may_close_the_session(self, kind: type[Any]) -> None:
        def observe(event: Event) -> None:
            if isinstance(event, kind):
                session.close()

        session = self.start(_ONE, _ADD, observer=observe)
        with pytest.raises(SessionError, match="closed"):
            session.run({"x": np.arange(40)})
        assert repr(session) == "<Session of one: over: it was closed>"

    def test_a_failure_does_not_wait_for_an_observer_that_is_busy(self) -> None:
        done = threading.Event()

        def watch(event: Event) -> None:
            if isinstance(event, CallEnded):
                done.wait(30)

        graph = fs.Graph("one", ["x"], [fs.Node("a", ["x"], replicas=2, batch_size=2)])
        session = self.start(graph, {"a": failing.fail_late}, observer=watch)
        try:
            began = time.monotonic()
            with pytest.raises(WorkerError, match="boom"):
                session.run({"x": np.arange(8)})
            assert time.monotonic() - began < self.at_once
        finally:
            done.set()
            session.close()
