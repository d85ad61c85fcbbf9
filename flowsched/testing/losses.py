"""A replica whose process dies is told by node and number within seconds, and takes nothing else along."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import flowsched as fs
from flowsched.backend import Feature
from flowsched.errors import ReplicaLostError, SessionError
from flowsched.testing.base import Suite, needs
from flowsched.testing.results import one_node
from flowsched.testing.workers import failing, rows
from flowsched.testing.workers import meeting as meetings


@needs(Feature.ISOLATION)
class LossTests(Suite):
    """Replicas that are processes, and die."""

    @pytest.mark.parametrize("how", ["exit", "kill"])
    def test_a_replica_that_dies_in_a_call_ends_the_step_with_its_place(self, how: str) -> None:
        with self.start(
            one_node(2, 2), {"a": partial(failing.die_at, bad=6, how=how, tester=os.getpid())}
        ) as session:
            began = time.monotonic()
            with pytest.raises(ReplicaLostError) as caught:
                session.run({"x": np.arange(8)})
            assert time.monotonic() - began < self.at_once
            assert (caught.value.node, caught.value.replica) == ("a", 1)
            assert "node 'a', replica 1" in str(caught.value)
            with pytest.raises(SessionError, match="step 0 failed with ReplicaLostError"):
                session.run({"x": np.arange(8)})

    def test_a_replica_that_dies_is_told_while_others_are_busy(self, meeting: Path) -> None:
        models = {"a": partial(meetings.die_when_others_are_busy, folder=meeting, tester=os.getpid())}
        with self.start(one_node(3, 1), models) as session:
            began = time.monotonic()
            with pytest.raises(ReplicaLostError) as caught:
                session.run({"x": np.arange(3)})
            assert time.monotonic() - began < self.at_once
        assert (caught.value.node, caught.value.replica) == ("a", 0)

    def test_a_replica_that_dies_before_its_readers_is_the_one_that_is_told(self) -> None:
        nodes = [
            fs.Node("a", ["x"], replicas=2, batch_size=2),
            fs.Node("b", ["a"], batch_size=3),
            fs.Node("c", ["b", "a"], replicas=2, batch_size=2),
        ]
        models = {
            "a": partial(failing.die_at, bad=7, how="exit", tester=os.getpid()),
            "b": rows.add_one,
            "c": rows.add,
        }
        with pytest.raises(ReplicaLostError) as caught:
            self.run(fs.Graph("deep", ["x"], nodes), models, {"x": np.arange(8)})
        assert (caught.value.node, caught.value.replica) == ("a", 1)

    def test_a_replica_that_dies_in_its_constructor_fails_the_start(self) -> None:
        began = time.monotonic()
        with pytest.raises(ReplicaLostError) as caught:
            self.start(one_node(2, 2), {"a": partial(failing.DiesWhileBuilt, bad=1, tester=os.getpid())})
        assert time.monotonic() - began < self.at_once
        assert (caught.value.node, caught.value.replica, caught.value.call) == ("a", 1, None)

    def test_after_a_loss_another_session_works(self) -> None:
        with pytest.raises(ReplicaLostError):
            self.run(
                one_node(2, 2),
                {"a": partial(failing.die_at, bad=0, how="kill", tester=os.getpid())},
                {"x": np.arange(4)},
            )
        assert self.run(one_node(2, 2), {"a": rows.add_one}, {"x": np.arange(4)})["a"].tolist() == [
            1,
            2,
            3,
            4,
        ]
