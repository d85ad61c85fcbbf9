"""What differs between the graph that a plan was made for and another."""

from __future__ import annotations

from dataclasses import fields

from flowsched.graph import Graph, Node


def graph_changes(made_for: Graph, given: Graph) -> list[str]:
    """Return one sentence for each difference, with both values; empty where the graphs are equal.

    >>> small, large = (Graph("g", ["x"], [Node("a", inputs=["x"], replicas=n)]) for n in (2, 3))
    >>> graph_changes(small, large)
    ["node 'a': replicas is 2 in the plan, 3 in the graph"]
    """
    changes = [
        _say(f"graph {key}", getattr(made_for, key), getattr(given, key))
        for key in ("name", "sources", "outputs")
        if getattr(made_for, key) != getattr(given, key)
    ]
    changes += [f"node {node.name!r} is in the plan only" for node in made_for if node.name not in given]
    changes += [f"node {node.name!r} is in the graph only" for node in given if node.name not in made_for]
    for node in made_for:
        if node.name in given:
            changes += _node_changes(node, given[node.name])
    if not changes and made_for != given:
        changes.append(
            _say("the order of the nodes", *([n.name for n in graph] for graph in (made_for, given)))
        )
    return changes


def _node_changes(made_for: Node, given: Node) -> list[str]:
    return [
        _say(f"node {given.name!r}: {item.name}", getattr(made_for, item.name), getattr(given, item.name))
        for item in fields(Node)
        if getattr(made_for, item.name) != getattr(given, item.name)
    ]


def _say(what: str, made_for: object, given: object) -> str:
    left, right = (list(value) if isinstance(value, tuple) else value for value in (made_for, given))
    return f"{what} is {left!r} in the plan, {right!r} in the graph"
