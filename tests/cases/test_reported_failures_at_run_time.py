"""Reported failures, hangs and leaks: each ends at once with its cause, and nothing is left over."""

from __future__ import annotations

import threading
import time
import weakref
from typing import Any

import numpy as np
import pytest

import flowsched as fs
from flowsched.errors import BuildError, OutputError, WorkerError
from flowsched.events import CallEnded, Event, StepStarted
from tests.cases.reported import CASES, graph_of
from tests.cases.running import Counts, Ids, Passing, assert_mentions, run_case


def test_f05_a_failing_sample_is_named_and_its_rows_turn_up_in_no_other_call() -> None:
    given: list[list[int]] = []

    def m(ids: Ids) -> Ids:
        given.append(ids.tolist())
        if 12 in ids:
            raise ValueError("bad item")
        return ids

    with pytest.raises(WorkerError) as caught:
        run_case("F05", {"m": m})
    assert_mentions(caught.value, CASES["F05"]["check"]["either"][1]["error"]["mentions"])
    assert given == [list(range(10)), list(range(10, 20))]


def test_h04_columns_filtered_to_different_rows_are_an_error_with_node_and_rows() -> None:
    def keep_some(ids: Ids) -> dict[str, Ids]:
        return {"ids": ids, "reward": ids[ids % 2 == 0]}

    with pytest.raises(OutputError) as caught:
        run_case("H04", {"gen": lambda ids: ids, "filter": keep_some})
    assert_mentions(caught.value, [*CASES["H04"]["check"]["error"]["mentions"], "reward"])


def test_j02_a_group_with_a_failed_session_never_reaches_the_next_node() -> None:
    sessions = graph_of("J02")["sess"]
    judge = fs.Node("judge", inputs=["sess"], replicas=2, group=4)
    judged: list[list[int]] = []

    def sess(ids: Ids) -> Ids:
        if 5 in ids:
            raise RuntimeError("session lost")
        return ids

    def judge_group(ids: Ids) -> Ids:
        judged.append(ids.tolist())
        return ids

    plan = fs.compile(fs.Graph("J02", sources=["source"], nodes=[sessions, judge]), 8)
    with pytest.raises(WorkerError) as caught:
        fs.run(plan, {"sess": sess, "judge": judge_group}, {"source": np.arange(8)})
    assert_mentions(caught.value, CASES["J02"]["check"]["error"]["mentions"])
    assert caught.value.samples == (5, 6)
    assert all(call == [0, 1, 2, 3] for call in judged)


def test_j03_one_failing_rollout_raises_with_node_sample_and_cause() -> None:
    def roll(ids: Ids) -> Ids:
        if 7 in ids:
            raise KeyError("answer")
        return ids

    with pytest.raises(WorkerError) as caught:
        run_case("J03", {"roll": roll})
    assert_mentions(caught.value, CASES["J03"]["check"]["either"][1]["error"]["mentions"])
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.samples == (7, 8)


def test_j04_a_replica_that_dies_in_its_second_call_ends_the_run_with_its_own_exception() -> None:
    class Gen:
        def __init__(self, context: fs.ReplicaContext) -> None:
            self.replica = context.replica
            self.calls = 0

        def __call__(self, ids: Ids) -> Ids:
            self.calls += 1
            if (self.replica, self.calls) == (1, 2):
                raise MemoryError("engine is gone")
            return ids

    began = time.perf_counter()
    with pytest.raises(WorkerError) as caught:
        run_case("J04", {"gen": Gen, "reward": lambda ids: ids})
    assert time.perf_counter() - began < CASES["J04"]["check"]["max_seconds"]
    assert_mentions(caught.value, CASES["J04"]["check"]["error"]["mentions"])
    assert (caught.value.node, caught.value.replica) == ("gen", 1)
    assert isinstance(caught.value.__cause__, MemoryError)


def test_j07_the_root_cause_is_named_and_not_masked_by_what_failed_later() -> None:
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
        run_case("J07", {"f1": f1, "f2": f2})
    assert_mentions(caught.value, CASES["J07"]["check"]["error"]["mentions"])
    assert (caught.value.node, caught.value.replica, caught.value.samples) == ("f1", 0, (4, 6))
    assert isinstance(caught.value.__cause__, ValueError)
    assert str(caught.value.__cause__) == "boom"


def test_j08_a_replica_that_cannot_be_built_ends_the_run_at_once() -> None:
    class W:
        def __init__(self, context: fs.ReplicaContext) -> None:
            if context.replica == 1:
                raise OSError("no device")

        def __call__(self, ids: Ids) -> Ids:
            return ids

    began = time.perf_counter()
    with pytest.raises(BuildError) as caught:
        run_case("J08", {"w": W})
    assert time.perf_counter() - began < CASES["J08"]["check"]["max_seconds"]
    assert_mentions(caught.value, CASES["J08"]["check"]["error"]["mentions"])
    assert (caught.value.node, caught.value.replica) == ("w", 1)
    assert isinstance(caught.value.__cause__, OSError)


def test_k01_no_more_calls_than_the_limit_are_in_flight() -> None:
    limit = CASES["K01"]["check"]["max_in_flight"]
    fast = fs.Node("fast", inputs=["source"], replicas=8, batch_size=1)
    slow = fs.Node("slow", inputs=["fast"], replicas=2, batch_size=1)
    counts = Counts()

    def produce(ids: Ids) -> Ids:
        counts.add(1)
        return ids

    def consume(ids: Ids) -> Ids:
        if ids[0] < 50:
            time.sleep(0.001)
        counts.add(-1)
        return ids

    plan = fs.compile(fs.Graph("K01", sources=["source"], nodes=[fast, slow]), 1000)
    out = fs.run(plan, {"fast": produce, "slow": consume}, {"source": np.arange(1000)}, max_in_flight=limit)
    assert out["slow"].tolist() == list(range(1000))
    assert 1 < counts.most <= limit


def test_k02_outputs_are_released_after_their_last_reader() -> None:
    live = Counts()

    def a(ids: Ids) -> Ids:
        made = ids + 1
        live.add(1)
        weakref.finalize(made, live.add, -1)
        return made

    def b(batch: Ids) -> Ids:
        time.sleep(0.001)  # so that the producer runs ahead as far as it may
        return batch * 2

    models: dict[str, Any] = {"a": a, "b": b, "c": lambda batch: batch + 0}
    plan = fs.compile(graph_of("K02"), 200)
    out = fs.run(plan, models, {"source": np.arange(200)}, max_in_flight=4)
    assert out["c"].tolist() == [2 * (i + 1) for i in range(200)]
    assert 1 < live.most <= 4 + 1  # a replica may still hold what it last read
    assert live.now == 0


def test_l04_progress_has_its_exact_total_before_the_first_call_and_ends_at_it() -> None:
    expected = CASES["L04"]["check"]["progress"]
    graph = graph_of("L04")
    events: list[Event] = []
    fs.run(fs.compile(graph, 20), Passing(graph).models, {"source": np.arange(20)}, observer=events.append)
    started = [event for event in events if isinstance(event, StepStarted)]
    ended = [event for event in events if isinstance(event, CallEnded)]
    assert len(started) == 1
    assert events.index(started[0]) < min(map(events.index, ended))
    assert sum(started[0].rows.values()) == expected["total_samples"]
    assert sum(started[0].calls.values()) == len(ended)
    assert sum(event.rows for event in ended) == expected["final_samples"]
    assert all(event.rows > 0 for event in ended)


def test_l08_generators_stop_after_the_step_and_leave_no_thread() -> None:
    graph = graph_of("L08")
    before = set(threading.enumerate())
    passing = Passing(graph)
    fs.run(fs.compile(graph, 24), passing.models, {"source": np.arange(24)})
    assert sum(len(call) for call in passing.seen["actor"]) == 24
    assert len(set(threading.enumerate()) - before) == CASES["L08"]["check"]["threads_left"]
