"""Of all orders in which no call waits for a later one, the checker takes the one that compiling gives."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import flowsched as fs
from flowsched.check import find_violations
from tests.planner.editing import blamed, recolumned
from tests.strategies import Workload, graphs


def _graph() -> fs.Graph:
    nodes = [
        fs.Node("a", inputs=["x"], batch_size=2),
        fs.Node("b", inputs=["a"], batch_size=2, replicas_of="a"),
        fs.Node("c", inputs=["x"], replicas=2),
        fs.Node("d", inputs=["x"], replicas=2),
    ]
    return fs.Graph("order", sources=["x"], nodes=nodes)


def test_a_call_that_needs_fewer_samples_comes_first() -> None:
    plan = fs.compile(_graph(), samples=4)
    sequence = plan.table.sequence.copy()
    calls = {call.name: number for number, call in enumerate(call for node in plan for call in node)}
    early, late = calls["c.0.0"], calls["c.1.0"]
    sequence[[early, late]] = sequence[[late, early]]
    message = blamed(recolumned(plan, sequence=sequence), "determinism")
    assert "needs 2 samples, and that one 4" in message


def test_of_calls_that_need_the_same_samples_those_of_the_earlier_node_come_first() -> None:
    plan = fs.compile(_graph(), samples=4)
    sequence = plan.table.sequence.copy()
    calls = {call.name: number for number, call in enumerate(call for node in plan for call in node)}
    swapped = [calls["c.0.0"], calls["d.0.0"]]
    sequence[swapped] = sequence[swapped[::-1]]
    message = blamed(recolumned(plan, sequence=sequence), "determinism")
    assert message.startswith("node 'c', call c.0.0[0:2]: it comes after d.0.0[0:2] in the sequence")


def test_a_queue_in_another_order_that_could_be_run_is_refused() -> None:
    plan = fs.compile(_graph(), samples=4)
    calls = [call.name for node in plan for call in node][:4]
    assert calls == ["a.0.0", "a.0.1", "b.0.2", "b.0.3"]
    position, sequence = plan.table.position.copy(), plan.table.sequence.copy()
    position[:4] = [0, 2, 1, 3]  # a, b, a, b: each call has what it reads
    order = np.sort(sequence[:4])
    sequence[:4] = order[[0, 2, 1, 3]]
    assert find_violations(recolumned(plan, position=position, sequence=sequence)) != []


@settings(max_examples=200, deadline=None)
@given(graphs(max_nodes=6, max_samples=60, max_rows=200, max_replicas=6, max_batch_size=12), st.data())
def test_no_other_sequence_passes(work: Workload, data: st.DataObject) -> None:
    plan = fs.compile(work.graph, work.samples)
    assert find_violations(plan) == []
    if plan.table.calls < 2:
        return
    number = np.argsort(plan.table.sequence)
    at = data.draw(st.integers(0, plan.table.calls - 2))
    sequence = plan.table.sequence.copy()
    sequence[number[[at, at + 1]]] = sequence[number[[at + 1, at]]]
    assert find_violations(recolumned(plan, sequence=sequence)) != []
