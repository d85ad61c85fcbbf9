"""The order that inputs and ``after`` put the nodes in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx as nx

    from flowsched.graph.declaration import Graph, Node


def find_cycle(nodes: Sequence[Node]) -> list[str]:
    """Return names along one cycle, the first repeated at the end; empty where there is none."""
    import networkx as nx

    try:
        edges = nx.find_cycle(dependencies(nodes))
    except nx.NetworkXNoCycle:
        return []
    return [edges[0][0], *(edge[1] for edge in edges)]


def topological_order(graph: Graph) -> tuple[int, ...]:
    """Return indices into ``graph.nodes``, producers first; ties in declared order."""
    import networkx as nx

    order = nx.lexicographical_topological_sort(dependencies(graph.nodes), key=graph.index)
    return tuple(graph.index(name) for name in order)


def dependencies(nodes: Sequence[Node]) -> nx.DiGraph[str]:
    """Return the graph of names with an edge from each node to those that wait for it."""
    import networkx as nx  # takes half a second to import, which declaring a graph's nodes need not pay

    names = {node.name for node in nodes}
    digraph: nx.DiGraph[str] = nx.DiGraph()
    digraph.add_nodes_from(node.name for node in nodes)
    for node in nodes:
        digraph.add_edges_from((name, node.name) for name in (*node.inputs, *node.after) if name in names)
    return digraph
