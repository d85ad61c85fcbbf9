"""Several nodes are served by the same replicas."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowsched as fs
from flowsched.backend import Feature
from flowsched.testing.base import Suite, needs
from flowsched.testing.workers import rows


def two_methods(**own: Any) -> fs.Graph:
    """Return a graph whose nodes call two methods of one model."""
    return fs.Graph(
        "shared",
        sources=["x"],
        nodes=[
            fs.Node("policy", ["x"], method="generate", **own),
            fs.Node("logprob", ["policy"], replicas_of="policy", method="score", batch_size=2),
        ],
        outputs=["policy", "logprob"],
    )


class SharedReplicaTests(Suite):
    """Nodes with ``replicas_of`` and ``method``."""

    @needs(Feature.SHARED_REPLICAS)
    def test_two_methods_of_one_model_are_served_by_the_same_replicas(self) -> None:
        out = self.run(two_methods(replicas=3, batch_size=4), {"policy": rows.Shared}, {"x": np.arange(25)})
        generated, scored = out["policy"], out["logprob"]
        assert len(set(generated["token"])) == 3
        replica_of = dict(zip(generated["token"], generated["replica"].tolist(), strict=True))
        assert dict(zip(scored["token"], scored["replica"].tolist(), strict=True)) == replica_of
        assert set(scored["owner"]) == {"policy"}

    @needs(Feature.SHARED_REPLICAS)
    def test_the_second_node_of_a_replica_sees_what_all_calls_of_the_first_left(self) -> None:
        out = self.run(two_methods(replicas=3, batch_size=4), {"policy": rows.Shared}, {"x": np.arange(25)})
        generated, scored = out["policy"], out["logprob"]
        made = {token: generated["token"].count(token) for token in set(generated["token"])}
        assert [made[token] for token in scored["token"]] == scored["generated"].tolist()

    @needs(Feature.SHARED_REPLICAS)
    def test_a_node_without_a_method_calls_the_shared_replica_itself(self) -> None:
        graph = fs.Graph(
            "shared",
            sources=["x"],
            nodes=[
                fs.Node("a", ["x"], replicas=2, method="generate"),
                fs.Node("b", ["x"], replicas_of="a"),
            ],
            outputs=["a", "b"],
        )
        out = self.run(graph, {"a": rows.Shared}, {"x": np.arange(6)})
        assert set(out["a"]["token"]) == set(out["b"]["token"])
        assert out["b"]["calls"].tolist() == [1] * 6

    def test_a_method_is_called_also_where_it_is_the_only_one(self) -> None:
        graph = fs.Graph("one", ["x"], [fs.Node("a", ["x"], replicas=2, batch_size=3, method="generate")])
        out = self.run(graph, {"a": rows.Shared}, {"x": np.arange(6)})["a"]
        assert out["generated"].tolist() == [3] * 6
        assert out["calls"].tolist() == [0] * 6
