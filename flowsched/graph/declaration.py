"""The graph as frozen data: one row a node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import unified_diff
from typing import Annotated, Any

from pydantic import Field

from flowsched.errors import GraphError, Problem, say_known
from flowsched.graph.fields import say_short, say_value
from flowsched.graph.keywords import say_keywords

Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$", description="letters, digits, _ and -")]
MOST_COUNT = 2**31 - 1
"""The most that a count of a node may be: what the columns of a plan can number."""

Count = Annotated[int, Field(ge=1, le=MOST_COUNT)]


@dataclass(frozen=True)
class Node:
    """A step of the graph, served by replicas of one model.

    A node is plain data and is not checked alone: the :class:`Graph` that takes it reports everything
    that is wrong with all of its nodes at once.

    Attributes:
        name: name of the node; letters, digits, ``_`` and ``-``.
        inputs: names of the sources and nodes it reads, in the order in which its worker takes them.
        replicas: how many replicas of the model serve it. A node with ``replicas_of`` has those of its owner.
        batch_size: the most rows that one call reads; None for a replica's whole share in one call.
        replicas_of: name of another node whose replicas serve this one too.
        method: the method of the model's class that is called; None for calling the object itself.
        after: names of nodes whose calls must all have ended before this node's first call.
        expand: rows that the worker returns for each row it reads (GRPO's answers per prompt).
        group: rows that always stay in one call; calls and loads are cut at multiples of it.
        collapse: rows that the worker turns into one; they always stay in one call.

    >>> Node("policy", inputs=["prompts"], replicas=2, batch_size=4)
    Node('policy', inputs=['prompts'], replicas=2, batch_size=4)
    """

    name: Name
    inputs: tuple[Name, ...] = ()
    replicas: Count = 1
    batch_size: Count | None = None
    replicas_of: Name | None = None
    method: Name | None = None
    after: tuple[Name, ...] = ()
    expand: Count = 1
    group: Count = 1
    collapse: Count = 1

    @say_keywords
    def __init__(
        self,
        name: str,
        inputs: Sequence[str] = (),
        *,
        replicas: int = 1,
        batch_size: int | None = None,
        replicas_of: str | None = None,
        method: str | None = None,
        after: Sequence[str] = (),
        expand: int = 1,
        group: int = 1,
        collapse: int = 1,
    ) -> None:
        given = {key: value for key, value in locals().items() if key != "self"}
        for key in ("inputs", "after"):
            if isinstance(given[key], list):
                given[key] = tuple(given[key])
        for key, value in given.items():
            object.__setattr__(self, key, value)

    @property
    def unit(self) -> int:
        """Rows that can not be parted: the group, or the rows that collapse into one."""
        return max(self.group, self.collapse)

    def __repr__(self) -> str:
        shown = [repr(self.name)]
        for item in fields(self)[1:]:
            value = getattr(self, item.name)
            if type(value) is not type(item.default) or value != item.default:  # arrays compare cell by cell
                shown.append(f"{item.name}={list(value) if isinstance(value, tuple) else value!r}")
        return f"Node({', '.join(shown)})"


@dataclass(frozen=True)
class Graph:
    """A directed acyclic graph of nodes: frozen data that compares, hashes and prints one row a node.

    Attributes:
        name: name of the graph.
        sources: names of the step's inputs; all have one row per sample.
        nodes: the nodes, in any order.
        outputs: names of the nodes whose batches come back; by default the nodes that nobody reads.

    Raises:
        GraphError: with every problem found, each with its place and mend.

    >>> graph = Graph("one", sources=["x"], nodes=[Node("double", inputs=["x"], replicas=2)])
    >>> graph.outputs
    ('double',)
    """

    name: Name
    sources: Annotated[tuple[Name, ...], Field(min_length=1)]
    nodes: Annotated[tuple[Node, ...], Field(min_length=1)]
    outputs: tuple[Name, ...]
    _index: dict[str, int] = field(init=False, repr=False, compare=False)

    @say_keywords
    def __init__(
        self,
        name: str,
        sources: Sequence[str],
        nodes: Iterable[Node],
        outputs: Sequence[str] | None = None,
    ) -> None:
        from flowsched.graph.validate import find_problems  # it reads this module

        given: dict[str, Any] = {
            "name": name,
            "sources": _tupled(sources),
            "nodes": _listed(nodes),
            "outputs": _tupled(outputs),
        }
        problems: list[Problem] = find_problems(given)
        if problems:
            raise GraphError(f"graph {say_short(name)}", problems)
        if given["outputs"] is None:
            given["outputs"] = _unread(given["nodes"])
        for key, value in given.items():
            object.__setattr__(self, key, value)
        object.__setattr__(self, "_index", {node.name: i for i, node in enumerate(self.nodes)})

    def __getitem__(self, name: str) -> Node:
        return self.nodes[self.index(name)]

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._index

    def __len__(self) -> int:
        return len(self.nodes)

    def index(self, name: str) -> int:
        """Return the place of the node called ``name`` in ``nodes``.

        Raises:
            GraphError: no node has this name.
        """
        given: object = name
        if isinstance(given, str) and given in self._index:
            return self._index[given]
        message = "there is no such node"
        if not isinstance(given, str):
            message = f"nodes are looked up by name, not by {say_value(given)}"
        mend = say_known(str(name) if isinstance(given, str) else "", tuple(self._index), "nodes")
        problem = Problem("unknown-node", f"node {say_short(given)}", message, mend)
        raise GraphError(f"graph {self.name!r}", [problem])

    def owner(self, name: str) -> Node:
        """Return the node whose replicas serve ``name``: itself unless it says ``replicas_of``."""
        node = self[name]
        return node if node.replicas_of is None else self[node.replicas_of]

    def owners(self) -> tuple[Node, ...]:
        """Return the nodes that have replicas of their own, in declared order."""
        return tuple(node for node in self.nodes if node.replicas_of is None)

    def readers(self, name: str) -> tuple[str, ...]:
        """Return the names of the nodes that read ``name``, in declared order."""
        return tuple(node.name for node in self.nodes if name in node.inputs)

    def to_dict(self) -> dict[str, Any]:
        """Return the graph as plain data, as graph files hold it; fields at their defaults are left out."""
        nodes = [
            {
                item.name: list(value) if isinstance(value, tuple) else value
                for item in fields(Node)
                if (value := getattr(node, item.name)) != item.default
            }
            for node in self.nodes
        ]
        return {
            "name": self.name,
            "sources": list(self.sources),
            "nodes": nodes,
            "outputs": list(self.outputs),
        }

    def diff(self, other: Graph) -> str:
        """Return what turns this graph into ``other``, as a unified diff of one row a node.

        It is empty where the graphs are equal.

        >>> small, large = (Graph("g", ["x"], [Node("a", inputs=["x"], replicas=n)]) for n in (2, 8))
        >>> print(small.diff(large))
        --- g
        +++ g
        @@ -1,3 +1,3 @@
         g: sources x; outputs a
           name  inputs  replicas
        -  a     x       2
        +  a     x       8
        """
        header, *rows = _aligned_rows((*self.nodes, *other.nodes))
        own, others = (
            [_heading(self), header, *rows[: len(self)]],
            [_heading(other), header, *rows[len(self) :]],
        )
        return "\n".join(unified_diff(own, others, self.name, other.name, lineterm=""))

    # What a graph is shown with stands above it and is loaded only when it is asked for.

    def to_mermaid(self) -> str:
        """Return the graph as a Mermaid flowchart."""
        from flowsched.inspect.diagrams import to_mermaid

        return to_mermaid(self)

    def to_dot(self) -> str:
        """Return the graph in Graphviz's DOT."""
        from flowsched.inspect.diagrams import to_dot

        return to_dot(self)

    def _repr_html_(self) -> str:
        from flowsched.inspect.notebook import graph_html

        return graph_html(self)

    def __repr__(self) -> str:
        return (
            f"<Graph {self.name}: {len(self.nodes)} nodes, {sum(n.replicas for n in self.owners())} replicas>"
        )

    def __str__(self) -> str:
        return "\n".join([_heading(self), *_aligned_rows(self.nodes)])


def _tupled(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _listed(nodes: Any) -> Any:
    """Return any iterable of nodes as a tuple, and what cannot be one as it is, to be refused with the rest."""
    return tuple(nodes) if isinstance(nodes, Iterable) and not isinstance(nodes, str | Mapping) else nodes


def _unread(nodes: tuple[Node, ...]) -> tuple[str, ...]:
    read = {name for node in nodes for name in node.inputs}
    return tuple(node.name for node in nodes if node.name not in read)


def _heading(graph: Graph) -> str:
    return f"{graph.name}: sources {', '.join(graph.sources)}; outputs {', '.join(graph.outputs)}"


def _aligned_rows(nodes: tuple[Node, ...]) -> list[str]:
    """Return a header and one line a node; columns that no node sets are left out."""
    columns = [f for f in fields(Node) if any(getattr(node, f.name) != f.default for node in nodes)]
    table = [[column.name for column in columns]]
    table += [[_cell(getattr(node, column.name)) for column in columns] for node in nodes]
    widths = [max(len(row[i]) for row in table) for i in range(len(columns))]
    return [
        "  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in table
    ]


def _cell(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "-"
    return "-" if value is None else str(value)
