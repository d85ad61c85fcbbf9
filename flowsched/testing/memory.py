"""Batches are released after their last reader, few are alive at once, and no limit ever stops a step."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import flowsched as fs
from flowsched.backend import Feature
from flowsched.testing.base import Cut, Suite, needs
from flowsched.testing.comparing import assert_same
from flowsched.testing.workers import observing, rows

_FAN = fs.Graph(
    "fan",
    sources=["source"],
    nodes=[
        fs.Node("start", ["source"], batch_size=1),
        fs.Node("a", ["start"], batch_size=1),
        fs.Node("slow", ["a"], batch_size=3),
        fs.Node("fast", ["a"], replicas=2, batch_size=1),
        fs.Node("c", ["slow", "fast"], batch_size=4),
    ],
)


def _chain(*, last: int | None = 1) -> fs.Graph:
    return fs.Graph(
        "chain",
        sources=["source"],
        nodes=[
            fs.Node("start", ["source"], batch_size=1),
            fs.Node("a", ["start"], batch_size=1),
            fs.Node("b", ["a"], batch_size=1),
            fs.Node("c", ["b"], batch_size=last),
        ],
    )


def _alive(pause: float = 0.0) -> dict[str, Any]:
    """Models that count batches which are alive in the process of their replica."""
    return {
        "start": rows.as_x,
        "a": partial(observing.Alive, "a_alive"),
        "b": partial(observing.Alive, "b_alive", pause),
        "c": rows.copied,
    }


def _needed(folder: Path, pause: float) -> dict[str, Any]:
    """Models that count rows of ``a`` that ``b`` has not ended with, in whatever process."""
    return {
        "start": rows.as_x,
        "a": partial(observing.Needed, folder, ("b",)),
        "b": partial(observing.read, folder=folder, pause=pause),
        "c": rows.copied,
    }


class MemoryTests(Suite):
    """``max_in_flight``: what has started while the first output is still needed."""

    @pytest.mark.parametrize("limit", [1, 2, 5])
    def test_calls_of_a_node_that_are_needed_at_once_stay_within_max_in_flight(
        self, meeting: Path, limit: int
    ) -> None:
        models = _needed(meeting, 0.002)
        out = self.run(_chain(), models, {"source": np.arange(60)}, max_in_flight=limit)["c"]
        assert_same(out["x"], np.arange(60))
        assert out["needed"].max() <= limit

    def test_calls_of_a_node_that_are_needed_at_once_are_few_by_default(self, meeting: Path) -> None:
        out = self.run(_chain(), _needed(meeting, 0.002), {"source": np.arange(60)})["c"]
        assert out["needed"].max() <= 4

    def test_calls_that_are_needed_at_once_stay_few_where_several_nodes_read_them(
        self, meeting: Path
    ) -> None:
        models = {
            "start": rows.as_x,
            "a": partial(observing.Needed, meeting, ("slow", "fast")),
            "slow": partial(observing.read, folder=meeting, pause=0.004),
            "fast": partial(observing.read, folder=meeting),
            "c": rows.join,
        }
        out = self.run(_FAN, models, {"source": np.arange(60)}, max_in_flight=6)["c"]
        assert_same(out["input0"]["x"], np.arange(60))
        assert out["input1"]["needed"].max() <= 6

    @pytest.mark.parametrize("limit", [1, 3])
    def test_live_outputs_of_a_node_stay_within_max_in_flight(self, limit: int) -> None:
        out = self.run(_chain(), _alive(pause=0.002), {"source": np.arange(100)}, max_in_flight=limit)["c"]
        assert_same(out["x"], np.arange(2, 102))
        assert out["a_alive"].max() <= limit
        assert out["b_alive"].max() <= limit

    def test_live_outputs_of_a_node_are_few_by_default(self) -> None:
        out = self.run(_chain(), _alive(pause=0.002), {"source": np.arange(100)})["c"]
        assert out["a_alive"].max() <= 4
        assert out["b_alive"].max() <= 4

    def test_live_outputs_stay_few_where_a_consumer_is_slow(self) -> None:
        out = self.run(_chain(), _alive(pause=0.003), {"source": np.arange(60)}, max_in_flight=2)["c"]
        assert out["a_alive"].max() <= 2

    def test_live_outputs_stay_few_where_several_nodes_read_them(self) -> None:
        models = {
            "start": rows.as_x,
            "a": partial(observing.Alive, "a_alive"),
            "slow": partial(observing.Alive, "slow_alive", 0.002),
            "fast": rows.copied,
            "c": rows.join,
        }
        out = self.run(_FAN, models, {"source": np.arange(60)}, max_in_flight=6)["c"]
        assert_same(out["input0"]["x"], np.arange(2, 62))
        assert out["input1"]["a_alive"].max() <= 6

    def test_a_node_that_needs_everything_does_not_wait_for_itself(self) -> None:
        out = self.run(_chain(last=None), _alive(), {"source": np.arange(60)}, max_in_flight=1)["c"]
        assert_same(out["x"], np.arange(2, 62))
        assert out["a_alive"].max() <= 1

    @pytest.mark.parametrize(("left", "right"), [(1, None), (None, 1), (3, 4)])
    def test_a_diamond_with_a_slow_branch_goes_on_with_one_call_in_flight(
        self, left: int | None, right: int | None
    ) -> None:
        graph = fs.Graph(
            "diamond",
            sources=["x"],
            nodes=[
                fs.Node("top", ["x"], replicas=2, batch_size=2),
                fs.Node("slow", ["top"], batch_size=left),
                fs.Node("fast", ["top"], replicas=2, batch_size=right),
                fs.Node("both", ["slow", "fast", "top"], replicas=2, batch_size=3),
            ],
        )
        models = {"top": rows.add_one, "slow": rows.add_one_late, "fast": rows.pass_on, "both": rows.join}
        out = self.run(graph, models, {"x": np.arange(25)}, max_in_flight=1)["both"]
        ones = np.arange(1, 26)
        assert_same(out, {"input0": ones + 1, "input1": ones, "input2": ones})

    def test_no_diamond_ever_waits_for_itself(self) -> None:
        after = [] if Feature.AFTER in self.kind().lacks else ["slow"]
        sizes = st.tuples(st.integers(1, min(5, self.widest)), st.none() | st.integers(1, 9))

        @settings(max_examples=self.examples, deadline=None, suppress_health_check=list(HealthCheck))
        @given(
            st.lists(sizes, min_size=5, max_size=5),
            st.sampled_from([[], after]),
            st.integers(0, 60),
            st.integers(1, 3),
        )
        def check(cuts: list[Cut], after: list[str], samples: int, limit: int) -> None:
            models = {
                "top": rows.add_one,
                "slow": rows.add_one_a_little_late,
                "fast": rows.add_one,
                "longer": rows.pass_on,
                "both": rows.join,
            }
            graph = _diamond(cuts, after)
            out = self.run(graph, models, {"x": np.arange(samples)}, max_in_flight=limit)["both"]
            if samples:
                ones = np.arange(1, samples + 1)
                assert_same(out, {"input0": ones + 1, "input1": ones + 1, "input2": ones})

        check()

    @needs(Feature.AFTER, Feature.SHARED_REPLICAS)
    def test_after_and_shared_replicas_go_on_with_one_call_in_flight(self) -> None:
        graph = fs.Graph(
            "waiting",
            sources=["x"],
            nodes=[
                fs.Node("policy", ["x"], replicas=2, batch_size=1),
                fs.Node("score", ["policy"], replicas_of="policy", batch_size=2),
                fs.Node("reward", ["score"], batch_size=1, after=["policy"]),
                fs.Node("train", ["reward", "policy"], replicas_of="policy", after=["score"]),
            ],
        )
        models = {"policy": rows.join, "reward": rows.pass_on}
        out = self.run(graph, models, {"x": np.arange(15)}, max_in_flight=1)
        policy = {"input0": np.arange(15)}
        assert_same(out["train"], {"input0": {"input0": policy}, "input1": policy})


def _diamond(cuts: list[Cut], after: list[str]) -> fs.Graph:
    top, slow, fast, longer, both = ({"replicas": count, "batch_size": size} for count, size in cuts)
    rows_of: list[dict[str, Any]] = [top, slow, fast, longer, both]
    names = ["top", "slow", "fast", "longer", "both"]
    inputs = [["x"], ["top"], ["top"], ["fast"], ["slow", "longer", "top"]]
    afters: list[list[str]] = [[], [], [], after, []]
    nodes = [
        fs.Node(name, read, after=behind, **row)
        for name, read, behind, row in zip(names, inputs, afters, rows_of, strict=True)
    ]
    return fs.Graph("diamond", sources=["x"], nodes=nodes)
