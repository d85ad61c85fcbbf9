"""What can be read of a graph some of whose fields are wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from flowsched.graph.fields import Where

Named = tuple[str, Where]
"""A name, and where it stands."""

_ONE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_SIZES = ("replicas", "batch_size", "expand", "group", "collapse")


@dataclass(frozen=True)
class Row:
    """What can be read of one node.

    Attributes:
        where: its place among the fields of the graph.
        name: its name, well formed or not; None where it is no string.
        inputs, after, replicas_of: the names in these fields that can be looked up.
        sizes: its numbers that are sound, by field.
        reads_nothing: whether its inputs are empty, and not just unreadable.
        shares: whether it says ``replicas_of``, readable or not.
    """

    where: Where
    name: str | None
    inputs: tuple[Named, ...]
    after: tuple[Named, ...]
    replicas_of: tuple[Named, ...]
    sizes: Mapping[str, int]
    reads_nothing: bool
    shares: bool

    @property
    def place(self) -> str:
        """What the node is called in a problem."""
        return f"nodes[{self.where[-1]}]" if self.name is None else f"node {self.name!r}"


@dataclass(frozen=True)
class ReadableGraph:
    """What can be read of a graph.

    Attributes:
        sources: the names of its sources, well formed or not.
        rows: its nodes.
        outputs: the names of its outputs that can be looked up.
        unnamed_sources, unnamed_nodes: how many more there are, whose names cannot be read; infinity where
            nobody can tell.
    """

    sources: tuple[Named, ...]
    rows: tuple[Row, ...]
    outputs: tuple[Named, ...]
    unnamed_sources: float
    unnamed_nodes: float

    def nodes(self) -> Iterator[tuple[str, Row]]:
        """Yield each node whose name can be read, with its name."""
        for row in self.rows:
            if row.name is not None:
                yield row.name, row


def read_graph(given: Mapping[str, Any], unsound: Collection[Where]) -> ReadableGraph:
    """Return what can be read of a graph.

    Args:
        given: the graph as its fields, right or wrong.
        unsound: the places of what is wrong with single fields.
    """
    from flowsched.graph.declaration import Node

    sources, nodes = given["sources"], given["nodes"]
    listed = nodes if isinstance(nodes, tuple) else ()
    rows = tuple(
        _read_row(node, ("nodes", i), unsound) for i, node in enumerate(listed) if isinstance(node, Node)
    )
    named = tuple(_names_in(sources, ("sources",)))
    return ReadableGraph(
        sources=named,
        rows=rows,
        outputs=_sound_names(given["outputs"], ("outputs",), unsound),
        unnamed_sources=len(sources) - len(named) if isinstance(sources, tuple) else 0 if named else math.inf,
        unnamed_nodes=len(listed) - sum(row.name is not None for row in rows) if listed else math.inf,
    )


def _read_row(node: Any, where: Where, unsound: Collection[Where]) -> Row:
    sizes = {key: getattr(node, key) for key in _SIZES if (*where, key) not in unsound}
    shared = node.replicas_of if (*where, "replicas_of") not in unsound else None
    return Row(
        where=where,
        name=node.name if isinstance(node.name, str) else None,
        inputs=_sound_names(node.inputs, (*where, "inputs"), unsound),
        after=_sound_names(node.after, (*where, "after"), unsound),
        replicas_of=() if shared is None else ((shared, (*where, "replicas_of")),),
        sizes={key: size for key, size in sizes.items() if size is not None},
        reads_nothing=isinstance(node.inputs, tuple)
        and not node.inputs
        and (*where, "inputs") not in unsound,
        shares=node.replicas_of is not None,
    )


def _sound_names(value: object, where: Where, unsound: Collection[Where]) -> tuple[Named, ...]:
    return tuple((name, at) for name, at in _names_in(value, where) if at == where or at not in unsound)


def _names_in(value: object, where: Where) -> Iterator[Named]:
    """Yield the strings of a list of names; one string is the only name of the list that it should be."""
    if isinstance(value, str) and _ONE_NAME.fullmatch(value):
        yield value, where
    elif isinstance(value, tuple):
        for i, name in enumerate(value):
            if isinstance(name, str):
                yield name, (*where, i)
