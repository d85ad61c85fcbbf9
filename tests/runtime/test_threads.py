"""What only the threads backend does: views of one memory, devices by name, steps inside steps."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from flowsched_threads import ThreadsBackend

import flowsched as fs
from flowsched.errors import BackendError, SessionError, WorkerError


def _graph(**own: Any) -> fs.Graph:
    return fs.Graph("chain", ["x"], [fs.Node("a", ["x"], batch_size=8), fs.Node("b", ["a"], **own)])


def _same(batch: Any) -> Any:
    return batch


class Keeping:
    """Keeps what it returned, or what it read, where the test finds it."""

    def __init__(self, kept: list[Any], make: Any = None) -> None:
        self.kept = kept
        self.make = make

    def __call__(self, batch: Any) -> Any:
        self.kept.append(self.make(batch) if self.make else batch)
        return self.kept[-1]


def _run(graph: fs.Graph, models: dict[str, Any], x: Any) -> fs.Outputs:
    return fs.run(fs.compile(graph, len(x)), models, {"x": x})


def test_slices_of_numpy_arrays_are_views_of_what_the_producer_made() -> None:
    made: list[Any] = []
    read: list[Any] = []
    models = {"a": partial(Keeping, made, np.copy), "b": partial(Keeping, read)}
    _run(_graph(replicas=4, batch_size=2), models, np.arange(8))
    assert len(read) == 4
    for piece in read:
        assert piece.base is made[0]
        assert np.shares_memory(piece, made[0])


def test_slices_of_tensors_are_views_of_what_the_producer_made() -> None:
    made: list[Any] = []
    read: list[Any] = []
    models = {"a": partial(Keeping, made, torch.clone), "b": partial(Keeping, read)}
    _run(_graph(replicas=4, batch_size=2), models, torch.arange(8))
    storage = made[0].untyped_storage().data_ptr()
    assert [piece.untyped_storage().data_ptr() for piece in read] == [storage] * 4


def test_a_batch_that_is_read_whole_is_not_copied() -> None:
    made: list[Any] = []
    read: list[Any] = []
    x = {"ids": np.arange(8), "text": ["a"] * 8}
    models = {"a": partial(Keeping, made), "b": partial(Keeping, read)}
    out = fs.run(fs.compile(_graph(), 8), models, {"x": x})
    for batch in made[0], read[0], out["b"]:
        assert np.shares_memory(batch["ids"], x["ids"])
        assert batch["text"] == x["text"]
        assert batch["text"] is not x["text"]


def test_columns_inside_dicts_are_views_too() -> None:
    read: list[Any] = []
    x: dict[str, Any] = {"deep": {"ids": np.arange(8)}, "list": [object() for _ in range(8)]}
    fs.run(fs.compile(_graph(batch_size=2), 8), {"a": _same, "b": partial(Keeping, read)}, {"x": x})
    assert all(piece["deep"]["ids"].base is x["deep"]["ids"] for piece in read)
    assert [element for piece in read for element in piece["list"]] == x["list"]


def test_devices_are_dealt_to_the_replicas_in_turn() -> None:
    graph = fs.Graph("one", ["x"], [fs.Node("a", ["x"], replicas=5, batch_size=1)])
    out = fs.run(
        fs.compile(graph, 10), {"a": _Devices}, {"x": np.arange(10)}, devices={"a": ["cuda:0", "cuda:1"]}
    )
    assert out["a"] == [("cuda:0", "cuda:0"), ("cuda:1", "cuda:1")] * 2 + [("cuda:0", "cuda:0")] + [
        ("cuda:0", "cuda:0"),
        ("cuda:1", "cuda:1"),
    ] * 2 + [("cuda:0", "cuda:0")]


class _Devices:
    def __init__(self, context: fs.ReplicaContext) -> None:
        self.device = context.device

    def __call__(self, batch: Any, context: fs.Context) -> Any:
        return [(self.device, context.device)] * len(batch)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"devices": {"polcy": ["cpu"]}},
            r"'polcy', which has no replicas of its own. Did you mean 'policy'\?",
        ),
        ({"devices": {"policy": "cuda:0"}}, "Give a list of at least one device"),
        ({"devices": {"policy": []}}, "Give a list of at least one device"),
        ({"grace": -1.0}, "Give seconds, 0 or more"),
        ({"grace": float("nan")}, "Give seconds, 0 or more"),
        ({"grace": "long"}, "Give seconds, 0 or more"),
    ],
)
def test_options_that_cannot_be_are_refused(options: Any, said: str) -> None:
    graph = fs.Graph("one", ["x"], [fs.Node("policy", ["x"])])
    with pytest.raises(BackendError, match=said):
        fs.start(graph, {"policy": _same}, **options)


def test_a_grace_without_end_is_no_trouble() -> None:
    backend = ThreadsBackend(grace=float("inf"))
    with pytest.raises(WorkerError):
        fs.run(fs.compile(_graph(), 8), {"a": _same, "b": _raise}, {"x": np.arange(8)}, backend=backend)


def _raise(_: Any) -> Any:
    raise ValueError("no")


@pytest.mark.timeout(30)
def test_a_worker_may_run_a_graph_of_its_own() -> None:
    def nested(batch: Any) -> Any:
        return _run(_graph(replicas=3, batch_size=2), {"a": _same, "b": lambda x: x * 10}, batch)["b"]

    out = _run(_graph(replicas=2, batch_size=4), {"a": nested, "b": nested}, np.arange(16))
    assert out["b"].tolist() == [number * 100 for number in range(16)]


@pytest.mark.timeout(30)
def test_a_failure_of_a_graph_inside_a_worker_keeps_both_places() -> None:
    def nested(batch: Any) -> Any:
        return _run(_graph(), {"a": _same, "b": _raise}, batch)["b"]

    with pytest.raises(
        WorkerError, match=r"node 'a'.*raised WorkerError: node 'b'.*ValueError: no"
    ) as caught:
        _run(_graph(), {"a": nested, "b": _same}, np.arange(4))
    inner = caught.value.__cause__
    assert isinstance(inner, WorkerError)
    assert type(inner.__cause__) is ValueError


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "act", [lambda session: session.run({"x": np.arange(4)}), lambda session: session.close()]
)
def test_a_worker_that_uses_its_own_session_fails_instead_of_waiting_for_itself(act: Any) -> None:
    held: list[fs.Session] = []

    def misusing(batch: Any) -> Any:
        act(held[0])
        return batch

    with fs.start(_graph(), {"a": misusing, "b": _same}) as session:
        held.append(session)
        with pytest.raises((WorkerError, SessionError), match=r"running a step|closed in the middle"):
            session.run({"x": np.arange(4)})


def test_a_thousand_replicas_of_one_node_are_built_used_and_ended() -> None:
    before = threading.active_count()
    graph = fs.Graph("wide", ["x"], [fs.Node("a", ["x"], replicas=1000, batch_size=1)])
    with fs.start(graph, {"a": _same}) as session:
        assert threading.active_count() == before + 1000
        assert session.run({"x": np.arange(2500)})["a"].tolist() == list(range(2500))
    assert threading.active_count() == before


def test_threads_are_named_after_their_replicas() -> None:
    with fs.start(_graph(replicas=2), {"a": _same, "b": _same}):
        assert {"a.0", "b.0", "b.1"} <= {thread.name for thread in threading.enumerate()}


def test_an_idle_session_keeps_nothing_of_its_last_step_alive() -> None:
    with fs.start(_graph(batch_size=2), {"a": np.copy, "b": np.copy}) as session:
        x = np.arange(8)
        out = session.run({"x": x})
        alive = [weakref.ref(x), *(weakref.ref(piece) for piece in out.pieces("b"))]
        del x, out
        assert _none_alive(alive)


def test_a_failed_step_keeps_its_batches_no_longer_than_its_exception() -> None:
    with fs.start(_graph(batch_size=2), {"a": np.copy, "b": _raise}) as session:
        x = np.arange(8)
        alive = [weakref.ref(x)]
        with pytest.raises(WorkerError):
            session.run({"x": x})
        del x
        gc.disable()  # without the collector only what is in no cycle goes
        try:
            assert _none_alive(alive)
        finally:
            gc.enable()


def _none_alive(references: list[Any]) -> bool:
    until = time.monotonic() + 5
    while any(reference() is not None for reference in references):
        if time.monotonic() > until:
            return False
        time.sleep(0.001)  # a thread may be about to let go
    return True


def test_replicas_are_given_up_in_their_own_threads_before_closing_returns() -> None:
    ended: list[str] = []

    class Owning:
        """Says in which thread it goes."""

        def __call__(self, batch: Any) -> Any:
            return batch

        def __del__(self) -> None:
            ended.append(threading.current_thread().name)

    with fs.start(_graph(replicas=2), {"a": Owning, "b": Owning}) as session:
        session.run({"x": np.arange(8)})
    assert sorted(ended) == ["a.0", "b.0", "b.1"]
