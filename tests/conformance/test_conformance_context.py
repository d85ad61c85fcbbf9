"""What a worker is told of its place, and the chance that it draws, which must not depend on that place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowsched as fs
from tests.comparing import assert_same
from tests.conformance import row_workers as rows
from tests.conformance.conftest import RunGraph


def _graph(replicas: int, batch_size: int | None) -> fs.Graph:
    return fs.Graph(
        "chance",
        sources=["x"],
        nodes=[
            fs.Node("a", ["x"], replicas=replicas, batch_size=batch_size),
            fs.Node("expand", ["x"], expand=3),
            fs.Node("b", ["expand"], replicas=replicas, batch_size=batch_size),
        ],
        outputs=["a", "b"],
    )


def _repeat(numbers: Any) -> Any:
    return rows.repeat(numbers, times=3)


OBSERVING: dict[str, Any] = {"a": rows.observe_context, "b": rows.observe_context, "expand": _repeat}
DRAWING: dict[str, Any] = {"a": rows.observe_chance, "b": rows.observe_chance, "expand": _repeat}
INPUTS = {"x": np.arange(22)}


@pytest.mark.parametrize(("replicas", "batch_size"), [(1, 1), (2, None), (3, 4), (22, 2), (40, 1)])
def test_chance_is_the_same_for_any_replicas_and_batch_sizes(
    run_graph: RunGraph, replicas: int, batch_size: int | None
) -> None:
    alone = run_graph(_graph(1, None), DRAWING, INPUTS, seed=3)
    assert_same(dict(run_graph(_graph(replicas, batch_size), DRAWING, INPUTS, seed=3)), dict(alone))


def test_each_row_of_each_node_has_a_seed_of_its_own(run_graph: RunGraph) -> None:
    out = run_graph(_graph(3, 4), DRAWING, INPUTS)
    seeds = np.concatenate([out["a"]["seed"], out["b"]["seed"]])
    assert seeds.dtype == np.uint64
    assert len(set(seeds.tolist())) == len(seeds) == 22 + 66


def test_chance_depends_on_the_seed_of_the_session_and_on_the_step(backend: str) -> None:
    found = []
    for seed in (0, 1):
        with fs.start(_graph(2, 3), DRAWING, backend=backend, seed=seed) as session:
            found += [session.run(INPUTS)["a"]["noise"].tolist() for _ in range(2)]
    assert len({tuple(noise) for noise in found}) == 4


def test_a_context_says_where_its_call_is_in_the_plan(run_graph: RunGraph) -> None:
    graph = _graph(3, 4)
    plan = fs.compile(graph, 22)
    out = run_graph(graph, OBSERVING, INPUTS)
    for name in ("a", "b"):
        for call in plan[name]:
            said = {key: column[call.start : call.stop] for key, column in out[name].items()}
            count = call.stop - call.start
            assert said["node"] == [name] * count
            assert said["replica"].tolist() == [call.replica] * count
            assert said["replicas"].tolist() == [3] * count
            assert said["start"].tolist() == [call.start] * count
            assert said["stop"].tolist() == [call.stop] * count
            assert not said["cancelled"].any()


def test_sample_ids_say_which_sample_each_row_belongs_to(run_graph: RunGraph) -> None:
    out = run_graph(_graph(4, 5), OBSERVING, INPUTS)
    assert out["a"]["sample"].tolist() == list(range(22))
    assert out["b"]["sample"].tolist() == [sample for sample in range(22) for _ in range(3)]


def test_sample_ids_of_rows_that_are_several_samples_are_those_of_the_first(run_graph: RunGraph) -> None:
    graph = fs.Graph("pairs", ["x"], [fs.Node("pair", ["x"], collapse=2), fs.Node("a", ["pair"], replicas=3)])
    out = run_graph(graph, {"pair": _sum_pairs, "a": rows.observe_context}, INPUTS)
    assert out["a"]["sample"].tolist() == list(range(0, 22, 2))


def _sum_pairs(numbers: Any) -> Any:
    return rows.sum_groups(numbers, size=2)


def test_steps_of_a_session_are_numbered_from_zero(backend: str) -> None:
    with fs.start(_graph(2, 3), OBSERVING, backend=backend) as session:
        numbers = [set(session.run(INPUTS)["a"]["step"].tolist()) for _ in range(3)]
    assert numbers == [{0}, {1}, {2}]
