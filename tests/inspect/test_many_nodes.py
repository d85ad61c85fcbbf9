"""Graphs of many nodes: explaining them takes seconds at most, and messages stay readable."""

from __future__ import annotations

from time import process_time

import pytest

import flowsched as fs
from flowsched.errors import GraphError, say_known


def test_explaining_a_plan_sorts_its_nodes_once() -> None:
    nodes = [fs.Node("n0", inputs=["x"])]
    nodes += [fs.Node(f"n{at}", inputs=[f"n{at - 1}"]) for at in range(1, 2_000)]
    plan = fs.compile(fs.Graph("chain", sources=["x"], nodes=nodes), samples=4)
    start = process_time()
    text = str(plan.explain())
    assert process_time() - start < 10  # a sort a node took 43 seconds
    assert "n1999" in text


def test_a_misspelt_name_among_many_is_answered_with_the_closest_and_the_first_twenty() -> None:
    said = say_known("node399x", [f"node{at}" for at in range(400)], "nodes")
    assert said.startswith("Did you mean 'node399'? Known nodes: node0, node1, ")
    assert said.endswith(", node19 and 380 more")


@pytest.mark.parametrize("count", [0, 1, 20])
def test_up_to_twenty_names_are_all_listed(count: int) -> None:
    names = [f"node{at}" for at in range(count)]
    assert say_known("?", names, "nodes") == f"Known nodes: {', '.join(names) or 'none'}"


def test_many_misspelt_names_make_a_message_that_grows_with_their_number_only() -> None:
    nodes = [fs.Node(f"node{at}", inputs=[f"nod{at}x"]) for at in range(200)]
    with pytest.raises(GraphError) as caught:
        fs.Graph("misspelt", sources=["x"], nodes=nodes)
    assert len(caught.value.problems) == 200
    assert len(str(caught.value)) < 200 * 400
