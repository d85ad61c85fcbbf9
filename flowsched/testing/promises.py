"""The promises of a plan, as they are kept while it runs: each call once, in its place, as soon as it can."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import flowsched as fs
from flowsched.backend import Feature
from flowsched.testing.base import Cut, Suite, needs
from flowsched.testing.kept import KeptSession
from flowsched.testing.workers import meeting as meetings
from flowsched.testing.workers import observing
from flowsched.testing.workers.observing import Noted


def _diamond(cut: Cut) -> fs.Graph:
    replicas, batch_size = cut
    return fs.Graph(
        "diamond",
        sources=["x"],
        nodes=[
            fs.Node("top", ["x"], replicas=2, batch_size=4),
            fs.Node("left", ["top"], replicas=replicas, batch_size=batch_size),
            fs.Node("right", ["top"], replicas=3, batch_size=3),
            fs.Node("both", ["left", "right", "x"], replicas=2, batch_size=5),
        ],
    )


class PromiseTests(Suite):
    """What every call does in a step, by the notes that its worker leaves."""

    def _notes(self, graph: fs.Graph, samples: int, folder: Path) -> tuple[fs.Plan, list[Noted]]:
        """Run one step and return its plan and what its workers noted."""
        plan = fs.compile(graph, samples)
        models = {node.name: partial(observing.Noting, folder) for node in graph.owners()}
        out = self.run_plan(plan, models, {"x": np.arange(samples)})
        for name in graph.outputs:
            assert out[name].tolist() == list(range(samples)), "the outputs come in the order of the inputs"
        return plan, observing.noted_in(folder)

    @pytest.fixture
    def noted(self, kept: KeptSession, tmp_path: Path) -> tuple[fs.Plan, list[Noted]]:
        """The plan and the notes of one step, at which several tests look."""
        found: tuple[fs.Plan, list[Noted]] = kept.remember(
            "noted", lambda: self._notes(_diamond((3, 2)), 29, tmp_path)
        )
        return found

    def test_the_calls_of_the_plan_are_made_once_each_and_no_others(self, cut: Cut, tmp_path: Path) -> None:
        graph = _diamond(cut)
        models = {node.name: partial(observing.Noting, tmp_path) for node in graph}
        seen: list[Noted] = []
        with self.start(graph, models) as session:
            for samples in (1, 5, 29):
                plan = fs.compile(graph, samples)
                session.run_plan(plan, {"x": np.arange(samples)})
                seen, before = observing.noted_in(tmp_path), seen
                made = Counter(noted.place for noted in seen)
                made.subtract(noted.place for noted in before)
                expected = {
                    (node.name, call.replica, call.start, call.stop) for node in plan for call in node
                }
                assert +made == Counter(expected)
        assert len({(noted.node, noted.replica) for noted in seen}) == len({noted.token for noted in seen})

    def test_each_sample_passes_each_node_once_in_balanced_calls_below_the_cap(
        self, noted: tuple[fs.Plan, list[Noted]]
    ) -> None:
        plan, notes = noted
        for node in plan.graph:
            own = [noted for noted in notes if noted.node == node.name]
            assert sorted(sample for noted in own for sample in noted.samples[0]) == list(range(29))
            loads = Counter(dict.fromkeys(range(node.replicas), 0))
            for call in own:
                loads[call.replica] += len(call.samples[0])
                assert 0 < len(call.samples[0]) <= (node.batch_size or 29)
            assert max(loads.values()) - min(loads.values()) <= 1

    def test_all_inputs_of_a_call_hold_its_samples_in_order(self, noted: tuple[fs.Plan, list[Noted]]) -> None:
        for call in noted[1]:
            for samples in call.samples:
                assert samples == list(range(call.start, call.stop))

    def test_a_replica_makes_its_calls_one_at_a_time_in_the_order_of_the_plan(
        self, noted: tuple[fs.Plan, list[Noted]]
    ) -> None:
        _assert_in_table_order(*noted)

    @needs(Feature.SHARED_REPLICAS)
    def test_replicas_that_several_nodes_share_make_calls_one_at_a_time_in_the_order_of_the_plan(
        self, tmp_path: Path
    ) -> None:
        graph = fs.Graph(
            "shared",
            sources=["x"],
            nodes=[
                fs.Node("policy", ["x"], replicas=2, batch_size=3),
                fs.Node("score", ["policy"], replicas_of="policy", batch_size=2),
                fs.Node("value", ["score"], replicas=3, batch_size=2),
                fs.Node("train", ["value", "policy"], replicas_of="policy", batch_size=4),
            ],
        )
        plan, notes = self._notes(graph, 23, tmp_path)
        _assert_in_table_order(plan, notes)

    def test_all_replicas_of_a_node_work_at_the_same_time(self, meeting: Path) -> None:
        graph = fs.Graph("wide", ["x"], [fs.Node("a", ["x"], replicas=3, batch_size=2)])
        models = {"a": partial(meetings.meet_all, folder=meeting, name="a", count=3, seconds=self.at_once)}
        assert self.run(graph, models, {"x": np.arange(6)})["a"] == [True] * 6

    def test_nodes_that_do_not_read_each_other_work_at_the_same_time(self, meeting: Path) -> None:
        graph = fs.Graph("two", ["x"], [fs.Node("a", ["x"]), fs.Node("b", ["x"])])
        model = partial(meetings.meet_all, folder=meeting, name="both", count=2, seconds=self.at_once)
        out = self.run(graph, {"a": model, "b": model}, {"x": np.arange(3)})
        assert out["a"] == out["b"] == [True] * 3

    def test_a_call_starts_as_soon_as_its_fragments_are_there(self, meeting: Path) -> None:
        graph = fs.Graph(
            "stream", ["x"], [fs.Node("make", ["x"], batch_size=2), fs.Node("read", ["make"], batch_size=2)]
        )
        models = {
            "make": partial(meetings.wait_for_a_reader_of_the_first, folder=meeting, seconds=self.at_once),
            "read": partial(meetings.pass_on_with_a_mark, folder=meeting),
        }
        out = self.run(graph, models, {"x": np.arange(4)})
        assert out["read"] == [True] * 4, "the second call of 'make' is under way when the first is read"

    def test_the_first_wave_of_a_producer_feeds_all_replicas_of_a_consumer(self, meeting: Path) -> None:
        graph = fs.Graph(
            "waves",
            sources=["x"],
            nodes=[
                fs.Node("make", ["x"], replicas=2, batch_size=2),
                fs.Node("read", ["make"], replicas=4, batch_size=1),
            ],
        )
        models = {
            "make": partial(
                meetings.wait_for_readers_of_the_first_wave,
                folder=meeting,
                readers=4,
                seconds=self.at_once,
            ),
            "read": partial(meetings.pass_on_with_a_mark, folder=meeting),
        }
        assert self.run(graph, models, {"x": np.arange(8)})["read"] == [True] * 8


def _assert_in_table_order(plan: fs.Plan, notes: list[Noted]) -> None:
    """Assert that each replica made its calls in the order of its queue, and none while it made another."""
    assert [noted for noted in notes if not noted.alone] == []
    owners = {node.name: plan.graph.owner(node.name).name for node in plan.graph}
    made: dict[tuple[str, int], list[tuple[int, str, int]]] = {}
    for noted in notes:
        made.setdefault((owners[noted.node], noted.replica), []).append((noted.turn, noted.node, noted.start))
    queues: dict[tuple[str, int], list[tuple[int, str, int]]] = {}
    for node in plan:
        for call in node:
            queues.setdefault((owners[node.name], call.replica), []).append(
                (call.position, node.name, call.start)
            )
    assert {key: sorted(calls) for key, calls in made.items()} == {
        key: sorted(calls) for key, calls in queues.items()
    }
