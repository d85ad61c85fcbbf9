"""Results are those of the graph, in the order of the inputs, whatever finished first and however it was cut."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowsched as fs
from flowsched.backend import Feature
from flowsched.reference import run_reference
from flowsched.testing.base import Cut, Suite, needs
from flowsched.testing.comparing import assert_same
from flowsched.testing.kept import KeptSession
from flowsched.testing.workers import meeting as meetings
from flowsched.testing.workers import rows


def one_node(replicas: int, batch_size: int | None, **options: Any) -> fs.Graph:
    """Return a graph of one node ``a`` that reads the source ``x``."""
    return fs.Graph("one", ["x"], [fs.Node("a", ["x"], replicas=replicas, batch_size=batch_size, **options)])


ADD_ONE: Mapping[str, Any] = {"a": rows.add_one}


class ResultTests(Suite):
    """What comes back."""

    def test_rows_come_back_in_order_though_calls_end_in_another(self, cut: Cut) -> None:
        out = self.run(one_node(*cut), {"a": rows.add_one_late}, {"x": np.arange(33)})
        assert_same(out["a"], np.arange(1, 34))

    def test_joins_of_differently_cut_inputs_align_rows(self, cut: Cut) -> None:
        graph = fs.Graph(
            "diamond",
            sources=["x"],
            nodes=[
                fs.Node("left", ["x"], replicas=2, batch_size=4),
                fs.Node("right", ["x"], replicas=3, batch_size=5),
                fs.Node("both", ["left", "right", "x"], replicas=cut[0], batch_size=cut[1]),
            ],
        )
        models = {"left": rows.add_one_late, "right": partial(rows.scale, factor=-1), "both": rows.join}
        x = np.arange(37)
        out = self.run(graph, models, {"x": x})
        assert_same(out["both"], {"input0": x + 1, "input1": -x, "input2": x})

    def test_several_sources_and_outputs(self) -> None:
        graph = fs.Graph(
            "several",
            sources=["x", "y"],
            nodes=[
                fs.Node("sum", ["x", "y"], replicas=2, batch_size=3),
                fs.Node("more", ["sum"], replicas=3, batch_size=2),
                fs.Node("only_y", ["y"], replicas=2),
            ],
            outputs=["only_y", "sum", "more"],
        )
        models = {"sum": rows.add, "more": rows.add_one, "only_y": rows.pass_on}
        x, y = np.arange(11), np.arange(11) * 10
        out = self.run(graph, models, {"y": y, "x": x})
        assert list(out) == ["only_y", "sum", "more"]
        assert_same(dict(out), {"only_y": y, "sum": x + y, "more": x + y + 1})

    def test_nodes_may_be_declared_in_any_order(self) -> None:
        nodes = [fs.Node("b", ["a"], batch_size=2), fs.Node("a", ["x"], batch_size=3)]
        models = {"a": rows.add_one, "b": rows.Scale}
        out = self.run(fs.Graph("reversed", ["x"], nodes), models, {"x": np.arange(7)})
        assert_same(out["b"], (np.arange(7) + 1) * 2)

    @pytest.mark.parametrize(
        ("model", "factor"),
        [
            (partial(rows.scale, factor=5), 5),
            (rows.Scale, 2),
            (partial(rows.Scale, 3), 3),
            (partial(partial(rows.Scale), factor=4), 4),
        ],
        ids=["partial of a function", "class", "partial of a class", "partial of a partial"],
    )
    def test_models_are_functions_classes_and_partials_of_either(self, model: Any, factor: int) -> None:
        out = self.run(one_node(2, 2), {"a": model}, {"x": np.arange(10)})
        assert_same(out["a"], np.arange(10) * factor)

    @needs(Feature.AFTER)
    def test_a_node_starts_after_all_calls_of_those_it_comes_after(self, meeting: Path) -> None:
        graph = fs.Graph(
            "ordered",
            sources=["x"],
            nodes=[
                fs.Node("train", ["x"], replicas=3, batch_size=2),
                fs.Node("sync", ["x"], replicas=2, batch_size=3, after=["train"]),
            ],
            outputs=["sync"],
        )
        plan = fs.compile(graph, 14)
        models = {
            "train": partial(meetings.leave_a_mark, folder=meeting),
            "sync": partial(meetings.count_marks, folder=meeting),
        }
        out = self.run_plan(plan, models, {"x": np.arange(14)})
        assert out["sync"] == [len(plan["train"])] * 14

    def test_any_replicas_and_batch_sizes_give_what_the_reference_gives(self, cut: Cut) -> None:
        at = self.cuts.index(cut)
        other = self.cuts[(at + 1) % len(self.cuts)]
        graph = fs.Graph(
            "ppo",
            sources=["x"],
            nodes=[
                fs.Node("policy", ["x"], replicas=cut[0], batch_size=cut[1]),
                fs.Node("reference", ["policy"], replicas=other[0], batch_size=other[1]),
                fs.Node("reward", ["policy", "reference"], replicas=cut[0], batch_size=other[1]),
                fs.Node("chance", ["x"], replicas=other[0], batch_size=cut[1]),
            ],
        )
        models: dict[str, Any] = {
            "policy": rows.add_one_late,
            "reference": rows.Scale,
            "reward": rows.add,
            "chance": rows.observe_chance,
        }
        inputs = {"x": np.arange(29)}
        out = self.run(graph, models, inputs, seed=7)
        assert_same(dict(out), run_reference(graph, models, inputs, seed=7))

    @pytest.mark.parametrize("samples", [0, 1, 2, 7, 8, 9])
    def test_fewer_samples_than_replicas_are_no_trouble(self, kept: KeptSession, samples: int) -> None:
        out = kept.run(one_node(min(8, self.widest), 1), ADD_ONE, {"x": np.arange(samples)})
        if samples:
            assert_same(out["a"], np.arange(samples) + 1)
        else:
            assert out["a"] == []

    def test_one_node_may_be_very_wide(self) -> None:
        out = self.run(one_node(self.widest, 1), {"a": rows.Shared}, {"x": np.arange(250)})
        assert sorted(set(out["a"]["replica"].tolist())) == list(range(self.widest))
        assert len(set(out["a"]["token"])) == self.widest

    def test_a_worker_may_return_its_input_itself(self) -> None:
        graph = fs.Graph("passing", ["x"], [fs.Node("a", ["x"]), fs.Node("b", ["a"]), fs.Node("c", ["b"])])
        x = np.arange(5)
        out = self.run(graph, dict.fromkeys("abc", rows.pass_on), {"x": x})
        assert_same(out["c"], x)

    def test_the_same_step_twice_gives_the_same_bits(self) -> None:
        graph = fs.Graph(
            "twice",
            sources=["x"],
            nodes=[fs.Node("a", ["x"], replicas=2, batch_size=3), fs.Node("b", ["a", "x"], replicas=2)],
            outputs=["a", "b"],
        )
        models = {"a": rows.observe_chance, "b": rows.join}
        first, second = (self.run(graph, models, {"x": np.arange(17)}, seed=5) for _ in range(2))
        assert_same(dict(first), dict(second))
