"""Which keys of a document are fields of a graph, which are misspelt fields, and which are neither."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from typing import Any

from flowsched.errors import Problem, say_known
from flowsched.graph.declaration import Graph, Node
from flowsched.graph.document import Document, Mark, Where

NODE_FIELDS = tuple(item.name for item in fields(Node))
GRAPH_FIELDS = tuple(item.name for item in fields(Graph) if item.init)
SCHEMA_KEY = "$schema"

_GRAPH = (GRAPH_FIELDS, ("name", "sources", "nodes"))
_NODE = (NODE_FIELDS, ("name",))
_ALIKE = 0.6
"""From here on a key may be meant for a field (as ``say_known`` has it): what lacks the field then follows."""

_THE_SAME = 0.8
"""From here on it can hardly be meant for anything else, and what stands under it is read as the field."""


class DocumentKeys:
    """The keys of a document: those that are unknown, missing or misspelt, and where fields are written.

    What stands under a key that is all but a field is read as that field, so that it is looked at with the rest.

    Attributes:
        lost: the fields that are not written, but may be what an unknown key stands for.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self._meant: dict[Where, dict[str, str]] = {(): self._misspelt((), GRAPH_FIELDS)}
        nodes = document.data.get(self.written((), "nodes"))
        for index, row in enumerate(nodes if isinstance(nodes, list | tuple) else ()):
            if isinstance(row, Mapping):
                self._meant["nodes", index] = self._misspelt(("nodes", index), NODE_FIELDS)
        self.lost = frozenset(lost for where in self._meant for lost in self._lost(where))

    def written(self, where: Where, field: str) -> str:
        """Return the key under which a field of the graph or of a node is written."""
        return self._meant.get(where, {}).get(field, field)

    def place(self, where: Where) -> Where:
        """Return the place in the document of a place among the fields of the graph."""
        found = list(where)
        if len(where) > 2:
            found[2] = self.written(where[:2], str(where[2]))
        return (self.written((), str(where[0])), *found[1:]) if where else ()

    def field(self, place: Where) -> Where:
        """Return the place among the fields of the graph of a place in the document."""
        found = list(place)
        for at in (0, 2):
            if len(place) > at:
                meant = self._meant.get(tuple(found[:at]), {})
                found[at] = next((field for field, key in meant.items() if key == found[at]), found[at])
        return tuple(found)

    def problems(self) -> Iterator[tuple[Mark, Problem]]:
        """Yield the keys that are unknown, and those that are missing and not just misspelt."""
        address = self._document.data.get(SCHEMA_KEY, "")
        if not isinstance(address, str):
            mark = self._document.mark((SCHEMA_KEY,))
            mend = "Give the address of the schema, a string"
            yield mark, Problem("wrong-type", str(mark), f"{SCHEMA_KEY} is {address!r}", mend, (SCHEMA_KEY,))
        for where in self._meant:
            yield from self._problems_of(where, *(_NODE if where else _GRAPH))

    def _problems_of(
        self, where: Where, fields: Sequence[str], required: Sequence[str]
    ) -> Iterator[tuple[Mark, Problem]]:
        row, document = self._row(where), self._document
        said, place = self._say_row(where), self.place(where)
        known = fields if where else (*fields, SCHEMA_KEY)
        for key in row:
            if key not in known:
                inner = (*place, key)
                mark = document.keys.get(inner) or document.mark(inner)
                mend = say_known(str(key), fields, "keys")
                yield mark, Problem("unknown-key", str(mark), f"{said} has no key {key!r}", mend, inner)
        for field in required:
            if self.written(where, field) not in row and (*where, field) not in self.lost:
                mark = document.mark(place)
                message, mend = f"{said} has no {field}", f"Give it the key {field!r}"
                yield mark, Problem("missing-key", str(mark), message, mend, (*where, field))

    def _misspelt(self, where: Where, fields: Sequence[str]) -> dict[str, str]:
        """Return the misspelt keys of a row by the fields, lacking in it, that they are taken for."""
        row = self._row(where)
        meant: dict[str, str] = {}
        for key in row:
            field = None if key in fields else _closest(key, fields, _THE_SAME)
            if field is not None and field not in row:
                meant.setdefault(field, key)
        return meant

    def _lost(self, where: Where) -> Iterator[Where]:
        row, meant = self._row(where), self._meant[where]
        fields, _ = _NODE if where else _GRAPH
        unknown = {key: value for key, value in row.items() if key not in (*fields, *meant.values())}
        lacking = [field for field in fields if field not in row and field not in meant] if unknown else []
        alike = {_closest(key, fields, _ALIKE) for key in unknown}
        names = any(isinstance(value, list | tuple | str) for value in unknown.values())
        for field in lacking:
            if field in alike or (field == "inputs" and names):
                yield (*where, field)

    def _row(self, where: Where) -> Mapping[Any, Any]:
        row: Mapping[Any, Any] = self._document.value(self.place(where))
        return row

    def _say_row(self, where: Where) -> str:
        if not where:
            return "the graph"
        name = self._row(where).get(self.written(where, "name"))
        return f"node {name!r}" if isinstance(name, str) else f"nodes[{where[-1]}]"


def _closest(key: object, fields: Sequence[str], cutoff: float) -> str | None:
    """Return the field that a key is most like, if it is so by ``cutoff`` of 1."""
    return next(iter(get_close_matches(str(key), fields, n=1, cutoff=cutoff)), None)
