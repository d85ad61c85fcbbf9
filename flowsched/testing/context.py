"""What a worker is told of its place, and the chance that it draws, which must not depend on that place."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import flowsched as fs
from flowsched.backend import Feature
from flowsched.testing.base import Cut, Suite, needs
from flowsched.testing.comparing import assert_same
from flowsched.testing.workers import rows


def _plain(replicas: int, batch_size: int | None) -> fs.Graph:
    return fs.Graph(
        "chance",
        sources=["x"],
        nodes=[
            fs.Node("a", ["x"], replicas=replicas, batch_size=batch_size),
            fs.Node("b", ["x"], replicas=replicas, batch_size=batch_size),
        ],
    )


def _expanding(replicas: int, batch_size: int | None) -> fs.Graph:
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


_OBSERVE: dict[str, Any] = {"a": rows.observe_context, "b": rows.observe_context}
_DRAW: dict[str, Any] = {"a": rows.observe_chance, "b": rows.observe_chance}
_EXPAND: dict[str, Any] = {"expand": partial(rows.repeat, times=3)}
_INPUTS = {"x": np.arange(22)}


class ContextTests(Suite):
    """``context`` of workers and of constructors."""

    @needs(Feature.ROWS)
    def test_chance_is_the_same_for_any_replicas_and_batch_sizes(self, cut: Cut) -> None:
        models = {**_DRAW, **_EXPAND}
        alone = self.run(_expanding(1, None), models, _INPUTS, seed=3)
        assert_same(dict(self.run(_expanding(*cut), models, _INPUTS, seed=3)), dict(alone))

    @needs(Feature.ROWS)
    def test_each_row_of_each_node_has_a_seed_of_its_own(self) -> None:
        out = self.run(_expanding(3, 4), {**_DRAW, **_EXPAND}, _INPUTS)
        seeds = np.concatenate([out["a"]["seed"], out["b"]["seed"]])
        assert seeds.dtype == np.uint64
        assert len(set(seeds.tolist())) == len(seeds) == 22 + 66

    def test_chance_depends_on_the_seed_of_the_session_and_on_the_step(self) -> None:
        found = []
        for seed in (0, 1):
            with self.start(_plain(2, 3), _DRAW, seed=seed) as session:
                found += [session.run(_INPUTS)["a"]["noise"].tolist() for _ in range(2)]
        assert len({tuple(noise) for noise in found}) == 4

    def test_a_context_says_where_its_call_is_in_the_plan(self) -> None:
        graph = _plain(3, 4)
        plan = fs.compile(graph, 22)
        out = self.run_plan(plan, _OBSERVE, _INPUTS)
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

    def test_a_worker_and_its_constructor_are_told_the_same_device(self) -> None:
        out = self.run(_plain(2, 3), {"a": rows.OnDevice, "b": rows.OnDevice}, _INPUTS)
        for name in ("a", "b"):
            assert out[name]["built_on"] == out[name]["called_on"]

    @needs(Feature.ROWS)
    def test_sample_ids_say_which_sample_each_row_belongs_to(self) -> None:
        out = self.run(_expanding(4, 5), {**_OBSERVE, **_EXPAND}, _INPUTS)
        assert out["a"]["sample"].tolist() == list(range(22))
        assert out["b"]["sample"].tolist() == [sample for sample in range(22) for _ in range(3)]

    @needs(Feature.ROWS)
    def test_sample_ids_of_rows_that_are_several_samples_are_those_of_the_first(self) -> None:
        nodes = [fs.Node("pair", ["x"], collapse=2), fs.Node("a", ["pair"], replicas=3)]
        models = {"pair": partial(rows.sum_groups, size=2), "a": rows.observe_context}
        out = self.run(fs.Graph("pairs", ["x"], nodes), models, _INPUTS)
        assert out["a"]["sample"].tolist() == list(range(0, 22, 2))

    def test_steps_of_a_session_are_numbered_from_zero(self) -> None:
        with self.start(_plain(2, 3), _OBSERVE) as session:
            numbers = [set(session.run(_INPUTS)["a"]["step"].tolist()) for _ in range(3)]
        assert numbers == [{0}, {1}, {2}]
