"""Rows that become several, stay together, become one, and meet the row that they came from."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import flowsched as fs
from flowsched.reference import run_reference
from tests.comparing import assert_same
from tests.conformance import row_workers as rows
from tests.conformance.conftest import RunGraph

CUTS = [(1, None), (2, 4), (3, 8), (8, 4), (16, None)]


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


GRPO_MODELS: dict[str, Any] = {
    "policy": partial(rows.repeat, times=4),
    "score": rows.add,
    "advantage": partial(rows.subtract_group_mean, size=4),
    "best": partial(rows.sum_groups, size=4),
    "report": rows.join,
}


@pytest.mark.parametrize(("replicas", "batch_size"), CUTS)
def test_expanded_grouped_and_collapsed_rows_are_those_of_the_reference(
    run_graph: RunGraph, replicas: int, batch_size: int | None
) -> None:
    inputs = {"prompts": np.arange(10)}
    graph = _grpo(replicas, batch_size)
    out = run_graph(graph, GRPO_MODELS, inputs)
    assert_same(dict(out), run_reference(graph, GRPO_MODELS, inputs))


def test_each_answer_meets_its_own_prompt(run_graph: RunGraph) -> None:
    prompts = np.arange(10)
    out = run_graph(_grpo(3, 2 * 4), GRPO_MODELS, {"prompts": prompts})
    answers = np.array([prompt * 100 + answer for prompt in prompts for answer in range(4)])
    assert_same(out["policy"], answers)
    assert_same(out["score"], answers + np.repeat(prompts, 4))
    assert_same(out["report"]["input2"], np.repeat(prompts, 4))


def test_siblings_stay_in_one_call(run_graph: RunGraph) -> None:
    out = run_graph(_grpo(8, 4), GRPO_MODELS, {"prompts": np.arange(10)})
    assert_same(out["advantage"], np.tile([-1.5, -0.5, 0.5, 1.5], 10))


@pytest.mark.parametrize(("replicas", "batch_size"), CUTS)
def test_expanding_twice_and_collapsing_in_steps(
    run_graph: RunGraph, replicas: int, batch_size: int | None
) -> None:
    graph = fs.Graph(
        "tree",
        sources=["x"],
        nodes=[
            fs.Node("two", ["x"], replicas=2, batch_size=3, expand=2),
            fs.Node("six", ["two", "x"], replicas=replicas, batch_size=batch_size, expand=3),
            fs.Node("back_to_two", ["six"], replicas=3, batch_size=7, collapse=3),
            fs.Node("meet", ["back_to_two", "two", "x"], replicas=replicas, batch_size=batch_size),
            fs.Node("all", ["six"], replicas=replicas, collapse=6),
        ],
    )
    models: dict[str, Any] = {
        "two": partial(rows.repeat, times=2),
        "six": _add_and_repeat,
        "back_to_two": partial(rows.sum_groups, size=3),
        "meet": rows.join,
        "all": partial(rows.sum_groups, size=6),
    }
    inputs = {"x": np.arange(13)}
    out = run_graph(graph, models, inputs)
    assert_same(dict(out), run_reference(graph, models, inputs))


def _add_and_repeat(left: Any, right: Any) -> Any:
    return rows.repeat(left + right, times=3)


def test_samples_may_collapse_into_one_row(run_graph: RunGraph) -> None:
    graph = fs.Graph("pairs", ["x"], [fs.Node("pair", ["x"], replicas=3, batch_size=4, collapse=2)])
    out = run_graph(graph, {"pair": partial(rows.sum_groups, size=2)}, {"x": np.arange(14)})
    assert_same(out["pair"], np.arange(14).reshape(7, 2).sum(axis=1))
