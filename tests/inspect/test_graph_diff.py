"""How two graphs differ, one row a node."""

from __future__ import annotations

from textwrap import dedent

import flowsched as fs
from tests.inspect.plans import grpo_graph, seed_graph


def _with(graph: fs.Graph, **changes: fs.Node | None) -> fs.Graph:
    nodes = [changes.get(node.name, node) for node in graph]
    return fs.Graph(graph.name, graph.sources, [node for node in nodes if node is not None])


def test_equal_graphs_have_an_empty_diff() -> None:
    assert grpo_graph().diff(grpo_graph()) == ""


def test_a_changed_row_is_the_only_one_marked_even_where_it_adds_a_column() -> None:
    changed = _with(seed_graph(), value=fs.Node("value", inputs=["policy"], replicas=16, group=2))
    assert seed_graph().diff(changed) == dedent("""\
        --- ppo
        +++ ppo
        @@ -2,5 +2,5 @@
           name       inputs             replicas  batch_size  group
           policy     prompts            2         4           1
           reference  policy             8         2           1
        -  value      policy             8         2           1
        +  value      policy             16        -           2
           reward     policy, reference  8         2           1""")


def test_a_node_that_is_gone_and_its_output_are_marked() -> None:
    lines = seed_graph().diff(_with(seed_graph(), value=None)).splitlines()
    marked = [line for line in lines[2:] if line.startswith(("-", "+"))]
    assert marked == [
        "-ppo: sources prompts; outputs value, reward",
        "+ppo: sources prompts; outputs reward",
        "-  value      policy             8         2",
    ]


def test_the_diff_is_empty_only_for_equal_graphs() -> None:
    graph = seed_graph()
    others = [
        fs.Graph("other", graph.sources, graph.nodes),
        fs.Graph(graph.name, [*graph.sources, "more"], graph.nodes),
        fs.Graph(graph.name, graph.sources, graph.nodes, outputs=["reward"]),
        fs.Graph(graph.name, graph.sources, reversed(graph.nodes)),
    ]
    assert all(graph.diff(other) for other in others)
