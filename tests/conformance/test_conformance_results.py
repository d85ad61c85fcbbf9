"""Results are those of the graph, in the order of the inputs, whatever finished first and however it was cut."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowsched as fs
from flowsched.reference import run_reference
from tests.comparing import assert_same
from tests.conformance import row_workers as rows
from tests.conformance.conftest import RunGraph

CUTS = [(1, None), (1, 1), (3, 2), (4, 5), (8, 1), (40, 3), (7, None)]


def _one_node(replicas: int, batch_size: int | None, **options: Any) -> fs.Graph:
    return fs.Graph("one", ["x"], [fs.Node("a", ["x"], replicas=replicas, batch_size=batch_size, **options)])


@pytest.mark.parametrize(("replicas", "batch_size"), CUTS)
def test_rows_come_back_in_order_though_calls_end_in_another(
    run_graph: RunGraph, replicas: int, batch_size: int | None
) -> None:
    out = run_graph(_one_node(replicas, batch_size), {"a": rows.add_one_late}, {"x": np.arange(33)})
    assert_same(out["a"], np.arange(1, 34))


@pytest.mark.parametrize(("replicas", "batch_size"), CUTS)
def test_joins_of_differently_cut_inputs_align_rows(
    run_graph: RunGraph, replicas: int, batch_size: int | None
) -> None:
    graph = fs.Graph(
        "diamond",
        sources=["x"],
        nodes=[
            fs.Node("left", ["x"], replicas=3, batch_size=4),
            fs.Node("right", ["x"], replicas=5, batch_size=3),
            fs.Node("both", ["left", "right", "x"], replicas=replicas, batch_size=batch_size),
        ],
    )
    models = {"left": rows.add_one_late, "right": partial(rows.scale, factor=-1), "both": rows.join}
    x = np.arange(37)
    out = run_graph(graph, models, {"x": x})
    assert_same(out["both"], {"input0": x + 1, "input1": -x, "input2": x})


def test_several_sources_and_outputs(run_graph: RunGraph) -> None:
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
    out = run_graph(graph, models, {"y": y, "x": x})
    assert list(out) == ["only_y", "sum", "more"]
    assert_same(dict(out), {"only_y": y, "sum": x + y, "more": x + y + 1})


def test_nodes_may_be_declared_in_any_order(run_graph: RunGraph) -> None:
    graph = fs.Graph(
        "reversed", ["x"], [fs.Node("b", ["a"], batch_size=2), fs.Node("a", ["x"], batch_size=3)]
    )
    out = run_graph(graph, {"a": rows.add_one, "b": rows.Scale}, {"x": np.arange(7)})
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
def test_models_are_functions_classes_and_partials_of_either(
    run_graph: RunGraph, model: Any, factor: int
) -> None:
    out = run_graph(_one_node(3, 2), {"a": model}, {"x": np.arange(10)})
    assert_same(out["a"], np.arange(10) * factor)


def _two_methods(**own: Any) -> fs.Graph:
    return fs.Graph(
        "shared",
        sources=["x"],
        nodes=[
            fs.Node("policy", ["x"], method="generate", **own),
            fs.Node("logprob", ["policy"], replicas_of="policy", method="score", batch_size=2),
        ],
        outputs=["policy", "logprob"],
    )


def test_two_methods_of_one_model_are_served_by_the_same_replicas(run_graph: RunGraph) -> None:
    out = run_graph(_two_methods(replicas=3, batch_size=4), {"policy": rows.Shared}, {"x": np.arange(25)})
    generated, scored = out["policy"], out["logprob"]
    assert len(set(generated["token"])) == 3
    replica_of = dict(zip(generated["token"], generated["replica"].tolist(), strict=True))
    assert dict(zip(scored["token"], scored["replica"].tolist(), strict=True)) == replica_of
    assert set(scored["owner"]) == {"policy"}


def test_the_second_node_of_a_replica_sees_what_all_calls_of_the_first_left(run_graph: RunGraph) -> None:
    out = run_graph(_two_methods(replicas=3, batch_size=4), {"policy": rows.Shared}, {"x": np.arange(25)})
    generated, scored = out["policy"], out["logprob"]
    made = {token: generated["token"].count(token) for token in set(generated["token"])}
    assert [made[token] for token in scored["token"]] == scored["generated"].tolist()


def test_a_node_without_a_method_calls_the_shared_replica_itself(run_graph: RunGraph) -> None:
    graph = fs.Graph(
        "shared",
        sources=["x"],
        nodes=[fs.Node("a", ["x"], replicas=2, method="generate"), fs.Node("b", ["x"], replicas_of="a")],
        outputs=["a", "b"],
    )
    out = run_graph(graph, {"a": rows.Shared}, {"x": np.arange(6)})
    assert set(out["a"]["token"]) == set(out["b"]["token"])
    assert out["b"]["calls"].tolist() == [1] * 6


def test_a_node_starts_after_all_calls_of_those_it_comes_after(run_graph: RunGraph, tmp_path: Path) -> None:
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
        "train": partial(rows.leave_a_mark, folder=tmp_path),
        "sync": partial(rows.count_marks, folder=tmp_path),
    }
    out = run_graph(graph, models, {"x": np.arange(14)})
    assert out["sync"].tolist() == [len(plan["train"])] * 14


@pytest.mark.parametrize("cuts", list(pairwise(CUTS)))
def test_any_replicas_and_batch_sizes_give_what_the_reference_gives(run_graph: RunGraph, cuts: Any) -> None:
    first, second = cuts
    graph = fs.Graph(
        "ppo",
        sources=["x"],
        nodes=[
            fs.Node("policy", ["x"], replicas=first[0], batch_size=first[1]),
            fs.Node("reference", ["policy"], replicas=second[0], batch_size=second[1]),
            fs.Node("reward", ["policy", "reference"], replicas=first[0], batch_size=second[1]),
            fs.Node("chance", ["x"], replicas=second[0], batch_size=first[1]),
        ],
    )
    models: dict[str, Any] = {
        "policy": rows.add_one_late,
        "reference": rows.Scale,
        "reward": rows.add,
        "chance": rows.observe_chance,
    }
    inputs = {"x": np.arange(29)}
    out = run_graph(graph, models, inputs, seed=7)
    assert_same(dict(out), run_reference(graph, models, inputs, seed=7))


@pytest.mark.parametrize("samples", [0, 1, 2, 7, 8, 9])
def test_fewer_samples_than_replicas_are_no_trouble(run_graph: RunGraph, samples: int) -> None:
    out = run_graph(_one_node(8, 1), {"a": rows.add_one}, {"x": np.arange(samples)})
    if samples:
        assert_same(out["a"], np.arange(samples) + 1)
    else:
        assert out["a"] == []


def test_one_node_may_be_a_hundred_replicas_wide(run_graph: RunGraph) -> None:
    out = run_graph(_one_node(100, 1), {"a": rows.Shared}, {"x": np.arange(250)})
    assert sorted(set(out["a"]["replica"].tolist())) == list(range(100))
    assert len(set(out["a"]["token"])) == 100


def test_a_worker_may_return_its_input_itself(run_graph: RunGraph) -> None:
    graph = fs.Graph("passing", ["x"], [fs.Node("a", ["x"]), fs.Node("b", ["a"]), fs.Node("c", ["b"])])
    x = np.arange(5)
    out = run_graph(graph, dict.fromkeys("abc", rows.pass_on), {"x": x})
    assert_same(out["c"], x)
