"""Exceptions and columns that misbehave when they are looked at keep their place."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import flowsched as fs
from flowsched.errors import BuildError, OutputError, WorkerError
from flowsched.events import CallEnded, Event
from tests.conformance.conftest import RunGraph

ONE = fs.Graph("one", ["x"], [fs.Node("a", ["x"], replicas=2, batch_size=2)])


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise SystemExit("not even to be told")


def raise_unspeakable(_: Any) -> Any:
    raise UnspeakableError


class BuildsUnspeakably:
    def __init__(self) -> None:
        raise UnspeakableError

    def __call__(self, batch: Any) -> Any:
        return batch


def test_an_exception_that_cannot_be_told_still_has_its_place(run_graph: RunGraph) -> None:
    with pytest.raises(WorkerError, match=r"node 'a'.*UnspeakableError: .its text cannot be told") as caught:
        run_graph(ONE, {"a": raise_unspeakable}, {"x": np.arange(8)})
    assert isinstance(caught.value.__cause__, UnspeakableError)
    with pytest.raises(BuildError, match="UnspeakableError"):
        run_graph(ONE, {"a": BuildsUnspeakably}, {"x": np.arange(8)})


def raise_at_length(_: Any) -> Any:
    raise ValueError("x" * 1_000_000)


def test_a_message_of_a_million_characters_is_cut(run_graph: RunGraph) -> None:
    with pytest.raises(WorkerError, match=r"\(1000000 characters\)") as caught:
        run_graph(ONE, {"a": raise_at_length}, {"x": np.arange(8)})
    assert len(str(caught.value)) < 3_000


def enormous(batch: Any) -> Any:
    return np.broadcast_to(np.zeros(1), (len(batch), 2**40))


def keep(batch: Any) -> Any:
    return batch


def test_inputs_that_no_memory_can_hold_are_told_with_their_place(run_graph: RunGraph) -> None:
    graph = fs.Graph("big", ["x"], [fs.Node("a", ["x"], replicas=2), fs.Node("b", ["a"])])
    with pytest.raises(OutputError, match=r"node 'b'.*cannot be cut and joined: .*MemoryError") as caught:
        run_graph(graph, {"a": enormous, "b": keep}, {"x": np.arange(4)})
    assert isinstance(caught.value.__cause__, MemoryError)


def endless(_: Any) -> Any:
    batch: dict[str, Any] = {}
    batch["again"] = batch
    return batch


def test_an_output_that_contains_itself_is_told_with_its_place(run_graph: RunGraph) -> None:
    with pytest.raises(OutputError, match=r"node 'a'.*cannot be looked into: RecursionError"):
        run_graph(ONE, {"a": endless}, {"x": np.arange(8)})


def fail_late(batch: Any) -> Any:
    if batch[0] == 2:  # the first call of the second replica
        time.sleep(0.1)
        raise ValueError("boom")
    return batch


@pytest.mark.timeout(20)
def test_a_failure_does_not_wait_for_an_observer_that_is_busy(run_graph: RunGraph) -> None:
    def watch(event: Event) -> None:
        if isinstance(event, CallEnded):
            time.sleep(4)

    began = time.monotonic()
    with pytest.raises(WorkerError, match="boom"):
        run_graph(ONE, {"a": fail_late}, {"x": np.arange(8)}, observer=watch)
    assert time.monotonic() - began < 3
