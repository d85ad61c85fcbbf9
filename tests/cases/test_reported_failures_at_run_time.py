"""Reported failures, hangs and leaks: each ends at once with its cause, and nothing is left over."""

from __future__ import annotations

import multiprocessing
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowsched as fs
from flowsched.backend import Backend
from flowsched.errors import BuildError, OutputError, WorkerError
from flowsched.events import CallEnded, Event, StepStarted
from flowsched.testing.workers import meeting
from tests.cases.reported import CASES, graph_of
from tests.cases.running import Ids, Notes, assert_mentions, passed, passing, run_case


def test_f05_a_failing_sample_is_named_and_its_rows_turn_up_in_no_other_call(
    backend: str | Backend, tmp_path: Path
) -> None:
    notes = Notes(tmp_path)

    def m(ids: Ids) -> Ids:
        notes.add(ids.tolist())
        if 12 in ids:
            raise ValueError("bad item")
        return ids

    with pytest.raises(WorkerError) as caught:
        run_case("F05", {"m": m}, backend)
    assert_mentions(caught.value, CASES["F05"]["check"]["either"][1]["error"]["mentions"])
    assert notes.all() == [list(range(10)), list(range(10, 20))]


def test_h04_columns_filtered_to_different_rows_are_an_error_with_node_and_rows(
    backend: str | Backend,
) -> None:
    def keep_some(ids: Ids) -> dict[str, Ids]:
        return {"ids": ids, "reward": ids[ids % 2 == 0]}

    with pytest.raises(OutputError) as caught:
        run_case("H04", {"gen": lambda ids: ids, "filter": keep_some}, backend)
    assert_mentions(caught.value, [*CASES["H04"]["check"]["error"]["mentions"], "reward"])


def test_j02_a_group_with_a_failed_session_never_reaches_the_next_node(
    backend: str | Backend, tmp_path: Path
) -> None:
    sessions = graph_of("J02")["sess"]
    judge = fs.Node("judge", inputs=["sess"], replicas=2, group=4)
    notes = Notes(tmp_path)

    def sess(ids: Ids) -> Ids:
        if 5 in ids:
            raise RuntimeError("session lost")
        return ids

    def judge_group(ids: Ids) -> Ids:
        notes.add(ids.tolist())
        return ids

    plan = fs.compile(fs.Graph("J02", sources=["source"], nodes=[sessions, judge]), 8)
    with pytest.raises(WorkerError) as caught:
        fs.run(plan, {"sess": sess, "judge": judge_group}, {"source": np.arange(8)}, backend=backend)
    assert_mentions(caught.value, CASES["J02"]["check"]["error"]["mentions"])
    assert caught.value.samples == (5, 6)
    assert all(call == [0, 1, 2, 3] for call in notes.all())


def test_j03_one_failing_rollout_raises_with_node_sample_and_cause(backend: str | Backend) -> None:
    def roll(ids: Ids) -> Ids:
        if 7 in ids:
            raise KeyError("answer")
        return ids

    with pytest.raises(WorkerError) as caught:
        run_case("J03", {"roll": roll}, backend)
    assert_mentions(caught.value, CASES["J03"]["check"]["either"][1]["error"]["mentions"])
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.samples == (7, 8)


def test_j04_a_replica_that_dies_in_its_second_call_ends_the_run_with_its_own_exception(
    backend: str | Backend,
) -> None:
    class Gen:
        def __init__(self, context: fs.ReplicaContext) -> None:
            self.replica = context.replica
            self.calls = 0

        def __call__(self, ids: Ids) -> Ids:
            self.calls += 1
            if (self.replica, self.calls) == (1, 2):
                raise MemoryError("engine is gone")
            return ids

    graph, inputs = graph_of("J04"), {"source": np.arange(CASES["J04"]["num_samples"])}
    with fs.start(graph, {"gen": Gen, "reward": lambda ids: ids}, backend=backend) as session:
        began = time.perf_counter()
        with pytest.raises(WorkerError) as caught:
            session.run(inputs)
        assert time.perf_counter() - began < CASES["J04"]["check"]["max_seconds"]
    assert_mentions(caught.value, CASES["J04"]["check"]["error"]["mentions"])
    assert (caught.value.node, caught.value.replica) == ("gen", 1)
    assert isinstance(caught.value.__cause__, MemoryError)


def test_j07_the_root_cause_is_named_and_not_masked_by_what_failed_later(backend: str | Backend) -> None:
    def f1(ids: Ids) -> Ids:
        if 5 in ids:
            raise ValueError("boom")
        return ids

    def f2(ids: Ids, context: fs.Context) -> Ids:
        while not context.cancelled() and 0 in ids:
            time.sleep(0.001)
        if context.cancelled():
            raise TimeoutError("channel timed out")
        return ids

    with pytest.raises(WorkerError) as caught:
        run_case("J07", {"f1": f1, "f2": f2}, backend)
    assert_mentions(caught.value, CASES["J07"]["check"]["error"]["mentions"])
    assert (caught.value.node, caught.value.replica, caught.value.samples) == ("f1", 0, (4, 6))
    assert isinstance(caught.value.__cause__, ValueError)
    assert str(caught.value.__cause__) == "boom"


def test_j08_a_replica_that_cannot_be_built_ends_the_run_at_once(
    backend: str | Backend, tmp_path: Path
) -> None:
    class W:
        def __init__(self, context: fs.ReplicaContext) -> None:
            if context.replica == 1:
                (tmp_path / "raised").touch()
                raise OSError("no device")

        def __call__(self, ids: Ids) -> Ids:
            return ids

    with pytest.raises(BuildError) as caught:
        run_case("J08", {"w": W}, backend)
    raised = (tmp_path / "raised").stat().st_mtime
    assert time.time() - raised < CASES["J08"]["check"]["max_seconds"]
    assert_mentions(caught.value, CASES["J08"]["check"]["error"]["mentions"])
    assert (caught.value.node, caught.value.replica) == ("w", 1)
    assert isinstance(caught.value.__cause__, OSError)


def test_k01_no_more_calls_than_the_limit_are_in_flight(backend: str | Backend, tmp_path: Path) -> None:
    limit = CASES["K01"]["check"]["max_in_flight"]
    fast = fs.Node("fast", inputs=["source"], replicas=8, batch_size=1)
    slow = fs.Node("slow", inputs=["fast"], replicas=2, batch_size=1)

    def produce(ids: Ids) -> dict[str, Ids]:
        meeting.arrive(tmp_path, "produced")
        in_flight = meeting.arrivals(tmp_path, "produced") - meeting.arrivals(tmp_path, "consumed")
        return {"ids": ids, "in_flight": np.full(1, in_flight)}

    def consume(batch: dict[str, Ids]) -> dict[str, Ids]:
        if batch["ids"][0] < 50:
            time.sleep(0.001)
        meeting.arrive(tmp_path, "consumed")
        return batch

    plan = fs.compile(fs.Graph("K01", sources=["source"], nodes=[fast, slow]), 1000)
    models = {"fast": produce, "slow": consume}
    out = fs.run(plan, models, {"source": np.arange(1000)}, backend=backend, max_in_flight=limit)
    assert out["slow"]["ids"].tolist() == list(range(1000))
    assert 1 < out["slow"]["in_flight"].max() <= limit


def test_k02_outputs_are_no_longer_needed_after_their_last_reader(
    backend: str | Backend, tmp_path: Path
) -> None:
    def a(ids: Ids) -> dict[str, Ids]:
        meeting.arrive(tmp_path, "made")
        live = meeting.arrivals(tmp_path, "made") - meeting.arrivals(tmp_path, "read")
        return {"ids": ids + 1, "live": np.full(len(ids), live)}

    def b(batch: dict[str, Ids]) -> dict[str, Ids]:
        time.sleep(0.001)  # so that the producer runs ahead as far as it may
        meeting.arrive(tmp_path, "read")
        return {**batch, "ids": batch["ids"] * 2}

    models: dict[str, Any] = {"a": a, "b": b, "c": lambda batch: batch}
    plan = fs.compile(graph_of("K02"), 200)
    out = fs.run(plan, models, {"source": np.arange(200)}, backend=backend, max_in_flight=4)["c"]
    assert out["ids"].tolist() == [2 * (i + 1) for i in range(200)]
    assert 1 < out["live"].max() <= 4


def test_k02_outputs_are_released_after_their_last_reader_on_threads() -> None:
    alive: set[int] = set()
    most: list[int] = []

    def a(ids: Ids) -> Ids:
        made = ids + 1
        alive.add(int(made[0]))
        weakref.finalize(made, alive.discard, int(made[0]))
        most.append(len(alive))
        return made

    def b(batch: Ids) -> Ids:
        time.sleep(0.001)
        return batch * 2

    models: dict[str, Any] = {"a": a, "b": b, "c": lambda batch: batch + 0}
    plan = fs.compile(graph_of("K02"), 200)
    out = fs.run(plan, models, {"source": np.arange(200)}, max_in_flight=4)
    assert out["c"].tolist() == [2 * (i + 1) for i in range(200)]
    assert 1 < max(most) <= 4 + 1  # a replica may still hold what it last read
    assert alive == set()


def test_l04_progress_has_its_exact_total_before_the_first_call_and_ends_at_it(
    backend: str | Backend, tmp_path: Path
) -> None:
    expected = CASES["L04"]["check"]["progress"]
    graph = graph_of("L04")
    events: list[Event] = []
    models, inputs = passing(graph, tmp_path), {"source": np.arange(20)}
    fs.run(fs.compile(graph, 20), models, inputs, backend=backend, observer=events.append)
    started = [event for event in events if isinstance(event, StepStarted)]
    ended = [event for event in events if isinstance(event, CallEnded)]
    assert len(started) == 1
    assert events.index(started[0]) < min(map(events.index, ended))
    assert sum(started[0].rows.values()) == expected["total_samples"]
    assert sum(started[0].calls.values()) == len(ended)
    assert sum(event.rows for event in ended) == expected["final_samples"]
    assert all(event.rows > 0 for event in ended)


def test_l08_generators_stop_after_the_step_and_leave_no_thread_or_process(
    backend: str | Backend, tmp_path: Path
) -> None:
    graph, inputs = graph_of("L08"), {"source": np.arange(24)}
    models = passing(graph, tmp_path)
    fs.run(
        fs.compile(graph, 24), models, inputs, backend=backend
    )  # what a backend keeps is there from now on
    before = _running()
    fs.run(fs.compile(graph, 24), models, inputs, backend=backend)
    assert sum(len(call) for call in passed("actor", tmp_path)) == 24 * 2
    assert len(_running() - before) == CASES["L08"]["check"]["threads_left"]


def _running() -> set[object]:
    return {*threading.enumerate(), *multiprocessing.active_children()}
