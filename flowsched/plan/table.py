"""The routing table: every call and every fragment as columns of numpy arrays, never an object a row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Number = TypeVar("Number", bound=np.generic)

COLUMN_TYPES = {
    "node": np.int32,
    "replica": np.int32,
    "wave": np.int32,
    "position": np.int32,
    "start": np.int64,
    "stop": np.int64,
    "sequence": np.int64,
    "feed": np.int64,
    "producer": np.int64,
    "fragment_start": np.int64,
    "fragment_stop": np.int64,
}


def seal(column: NDArray[Number]) -> NDArray[Number]:
    """Return an array made read-only with all that it is a view of, for a table to keep without a copy."""
    memory: object = column
    while isinstance(memory, np.ndarray):
        memory.flags.writeable = False
        memory = memory.base
    return column


def _is_sealed(column: NDArray[Any]) -> bool:
    """Whether nobody can write to the array, nor to an array that it is a view of."""
    memory: object = column
    while isinstance(memory, np.ndarray):
        if memory.flags.writeable:
            return False
        memory = memory.base
    return memory is None


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """All calls and fragments of a plan. All ranges are half-open.

    Calls stand node by node in the order in which the graph declares them and, inside a node, in the order
    of the rows they read. The number of a call is its place in these columns.

    The columns are read-only and stay as they are: an array that somebody else can still write to is copied.
    :func:`seal` spares the copy of one that its maker gives up.

    Attributes:
        node: (calls,) index of the node in ``graph.nodes``.
        replica: (calls,) index of the replica among those of the node's owner.
        wave: (calls,) the call is the wave-th of its replica for this node.
        position: (calls,) its place in the replica's queue, over all nodes that the replica serves.
        start, stop: (calls,) the rows of the node that the call reads.
        sequence: (calls,) its place in one order of all calls that respects every replica's queue, every
            fragment and every ``after``: running the calls one by one in this order always works.
        feed: (feeds + 1,) offsets into the fragment columns. The feeds of a call are consecutive, one for
            each input of its node; feeds stand in the order of the calls.
        producer: (fragments,) the number of the call that made the rows; ``-1 - s`` for source ``s``.
        fragment_start, fragment_stop: (fragments,) the rows, counted over all that the producing node makes.
    """

    node: Int32
    replica: Int32
    wave: Int32
    position: Int32
    start: Int64
    stop: Int64
    sequence: Int64
    feed: Int64
    producer: Int64
    fragment_start: Int64
    fragment_stop: Int64

    def __post_init__(self) -> None:
        for name, column in self.columns():
            exact = np.ascontiguousarray(column, dtype=COLUMN_TYPES[name])
            own = exact if _is_sealed(exact) else seal(exact.copy())
            object.__setattr__(self, name, own.view())  # numpy lets no view of a sealed array be written to

    def __reduce__(self) -> tuple[type[Table], tuple[NDArray[Any], ...]]:
        # Arrays come out of a pickle writable: what is unpickled goes the way of what is made.
        return type(self), tuple(column for _, column in self.columns())

    def __deepcopy__(self, memo: object) -> Table:
        return self

    def columns(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Yield the name and the array of each column, in a fixed order."""
        for field in fields(self):
            yield field.name, getattr(self, field.name)

    def __repr__(self) -> str:
        return f"<Table: {self.calls} calls, {self.fragments} fragments>"

    @property
    def calls(self) -> int:
        """Number of calls."""
        return len(self.node)

    @property
    def fragments(self) -> int:
        """Number of fragments."""
        return len(self.producer)
