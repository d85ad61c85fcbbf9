"""Rows that become several, stay together, become one, and meet the row that they came from."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import flowsched as fs
from flowsched.backend import Feature
from flowsched.reference import run_reference
from flowsched.testing.base import Cut, Suite, needs
from flowsched.testing.comparing import assert_same
from flowsched.testing.workers import rows


def _grpo(replicas: int, batch_size: int | None) -> fs.Graph:
    return fs.Graph(
        "grpo",
        sources=["prompts"],
        nodes=[
            fs.Node("policy", ["prompts"], replicas=replicas, batch_size=batch_size, expand=4),
            fs.Node("score", ["policy", "prompts"], replicas=3, batch_size=5),
            fs.Node("advantage", ["score"], replicas=replicas, batch_size=batch_size, group=4),
            fs.Node("best", ["advantage"], replicas=2, batch_size=batch_size, collapse=4),
            fs.Node("report", ["best", "advantage", "prompts"], replicas=2, batch_size=3),
        ],
        outputs=["policy", "score", "advantage", "best", "report"],
    )


_GRPO_MODELS: dict[str, Any] = {
    "policy": partial(rows.repeat, times=4),
    "score": rows.add,
    "advantage": partial(rows.subtract_group_mean, size=4),
    "best": partial(rows.sum_groups, size=4),
    "report": rows.join,
}


def _groups(cut: Cut) -> Cut:
    """Return a cut into calls of whole groups of four."""
    return cut[0], None if cut[1] is None else cut[1] * 4


class RowTests(Suite):
    """Nodes with ``expand``, ``group`` and ``collapse``."""

    @needs(Feature.ROWS)
    def test_expanded_grouped_and_collapsed_rows_are_those_of_the_reference(self, cut: Cut) -> None:
        inputs = {"prompts": np.arange(10)}
        graph = _grpo(*_groups(cut))
        out = self.run(graph, _GRPO_MODELS, inputs)
        assert_same(dict(out), run_reference(graph, _GRPO_MODELS, inputs))

    @needs(Feature.ROWS)
    def test_each_answer_meets_its_own_prompt_and_siblings_stay_in_one_call(self) -> None:
        prompts = np.arange(10)
        out = self.run(_grpo(2, 2 * 4), _GRPO_MODELS, {"prompts": prompts})
        answers = np.array([prompt * 100 + answer for prompt in prompts for answer in range(4)])
        assert_same(out["policy"], answers)
        assert_same(out["score"], answers + np.repeat(prompts, 4))
        assert_same(out["report"]["input2"], np.repeat(prompts, 4))
        assert_same(out["advantage"], np.tile([-1.5, -0.5, 0.5, 1.5], 10))

    @needs(Feature.ROWS)
    def test_expanding_twice_and_collapsing_in_steps(self, cut: Cut) -> None:
        replicas, batch_size = _groups(cut)
        graph = fs.Graph(
            "tree",
            sources=["x"],
            nodes=[
                fs.Node("two", ["x"], replicas=2, batch_size=3, expand=2),
                fs.Node("six", ["two", "x"], replicas=replicas, batch_size=batch_size, expand=3),
                fs.Node("back_to_two", ["six"], replicas=3, batch_size=7, collapse=3),
                fs.Node("meet", ["back_to_two", "two", "x"], replicas=replicas, batch_size=batch_size),
                fs.Node("all", ["six"], replicas=2, collapse=6),
            ],
        )
        models: dict[str, Any] = {
            "two": partial(rows.repeat, times=2),
            "six": rows.add_and_repeat,
            "back_to_two": partial(rows.sum_groups, size=3),
            "meet": rows.join,
            "all": partial(rows.sum_groups, size=6),
        }
        inputs = {"x": np.arange(13)}
        out = self.run(graph, models, inputs)
        assert_same(dict(out), run_reference(graph, models, inputs))

    @needs(Feature.ROWS)
    def test_samples_may_collapse_into_one_row(self) -> None:
        graph = fs.Graph("pairs", ["x"], [fs.Node("pair", ["x"], replicas=3, batch_size=4, collapse=2)])
        out = self.run(graph, {"pair": partial(rows.sum_groups, size=2)}, {"x": np.arange(14)})
        assert_same(out["pair"], np.arange(14).reshape(7, 2).sum(axis=1))

    @needs(Feature.ROWS)
    def test_each_row_made_has_a_seed_that_depends_on_no_replicas_or_batch_sizes(self) -> None:
        def drawn(**sizes: Any) -> Any:
            graph = fs.Graph("g", ["x"], [fs.Node("a", inputs=["x"], expand=4, **sizes)])
            return self.run(graph, {"a": rows.draw_made}, {"x": np.arange(10)})["a"]

        seeds = drawn(replicas=3, batch_size=2)
        assert len(np.unique(seeds)) == 40
        assert_same(seeds, drawn(replicas=1))
