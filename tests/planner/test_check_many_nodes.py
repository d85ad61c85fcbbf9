"""The checker's time grows with the nodes of a graph and with what they name, and not with their square."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

import pytest

import flowsched as fs


def _sharing(count: int) -> fs.Graph:
    nodes = [fs.Node("n0", inputs=["x"], replicas=2)]
    nodes += [fs.Node(f"n{at}", inputs=[f"n{at - 1}"], replicas_of="n0") for at in range(1, count)]
    return fs.Graph("sharing", sources=["x"], nodes=nodes)


def _from_many_sources(count: int) -> fs.Graph:
    nodes = [fs.Node(f"n{at}", inputs=[f"x{at}"]) for at in range(count)]
    return fs.Graph("sources", sources=[f"x{at}" for at in range(count)], nodes=nodes)


def _one_after_a_few(count: int) -> fs.Graph:
    nodes = [fs.Node(f"n{at}", inputs=["x"], after=[f"n{at - 1}"] if at else []) for at in range(count)]
    return fs.Graph("after", sources=["x"], nodes=nodes)


@pytest.mark.parametrize("graph", [_sharing, _from_many_sources, _one_after_a_few])
def test_eight_times_the_nodes_take_far_less_than_sixty_four_times_as_long(
    graph: Callable[[int], fs.Graph],
) -> None:
    few, many = (fs.compile(graph(count), samples=4) for count in (500, 4_000))
    assert min(_seconds(many) for _ in range(2)) < 24 * min(_seconds(few) for _ in range(3))


def _seconds(plan: fs.Plan) -> float:
    start = process_time()
    fs.check(plan)
    return process_time() - start


def test_many_names_after_which_a_node_comes_cost_less_to_check_than_to_plan() -> None:
    early = [fs.Node(f"a{at}", inputs=["x"]) for at in range(300)]
    late = [fs.Node(f"b{at}", inputs=["x"], after=[node.name for node in early]) for at in range(300)]
    graph = fs.Graph("after", sources=["x"], nodes=[*early, *late])
    start = process_time()
    plan = fs.compile(graph, samples=4)
    planning = process_time() - start
    assert _seconds(plan) < planning + 0.1
