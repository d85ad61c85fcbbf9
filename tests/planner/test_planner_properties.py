"""What every plan promises, whatever the graph and the sizes."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings

import flowsched as fs
from flowsched.check import find_violations
from tests.strategies import Workload, graphs


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_every_plan_keeps_every_promise(work: Workload) -> None:
    assert find_violations(fs.compile(work.graph, work.samples)) == []


@settings(max_examples=50, deadline=None)
@given(graphs())
def test_the_same_graph_and_sizes_give_the_same_bytes_and_hash(work: Workload) -> None:
    graph = fs.Graph(work.graph.name, work.graph.sources, work.graph.nodes, work.graph.outputs)
    first, second = fs.compile(work.graph, work.samples), fs.compile(graph, work.samples)
    for (name, column), (_, other) in zip(first.table.columns(), second.table.columns(), strict=True):
        assert column.tobytes() == other.tobytes(), name
    assert first.hash == second.hash
    assert first == second


def test_a_change_of_graph_or_samples_gives_another_hash() -> None:
    def hash_of(samples: int = 16, **changed: Any) -> str:
        node = fs.Node("policy", inputs=["prompts"], **{"replicas": 2, "batch_size": 4, **changed})
        return fs.compile(fs.Graph("one", sources=["prompts"], nodes=[node]), samples).hash

    hashes = [hash_of(), hash_of(samples=17), hash_of(replicas=3), hash_of(batch_size=5), hash_of(group=2)]
    assert len(set(hashes)) == len(hashes)
