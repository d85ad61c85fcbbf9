"""The order that inputs and ``after`` put the nodes in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx as nx

    from flowsched.graph.declaration import Graph, Node


def find_cycles(edges: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Return the names along one cycle of each set of names that all wait for each other.

    Args:
        edges: pairs of a name and one that waits for it.

    >>> find_cycles([("x", "a"), ("a", "b"), ("b", "a"), ("c", "c")])
    [['a', 'b'], ['c']]
    """
    import networkx as nx

    digraph: nx.DiGraph[str] = nx.DiGraph(edges)
    member = {
        name: number
        for number, names in enumerate(nx.strongly_connected_components(digraph))
        for name in names
    }
    inner: dict[int, nx.DiGraph[str]] = {}
    for start, stop in digraph.edges:
        if member[start] == member[stop]:
            inner.setdefault(member[start], nx.DiGraph()).add_edge(start, stop)
    found = [nx.find_cycle(component) for component in inner.values()]
    return [[start for start, _ in cycle] for cycle in found]


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
