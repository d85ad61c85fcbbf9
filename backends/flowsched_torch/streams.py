"""Messages of one number, step after step: how large they may be is known on both sides from those before.

Each message begins with one part of a fixed capacity: a header, the shapes, and what fits in. What does not fit
follows in a second part of exact size. Large columns follow one by one, each into memory that the receiver has
posted for one as large as last time, where it fits, and otherwise into memory of its exact size. Both sides draw
the same conclusions from what was sent, so that nothing needs to be asked for.
"""

from __future__ import annotations

import pickle
import struct
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from flowsched.backend import pack_error, unpack_error
from flowsched.batch import Batch
from flowsched_torch.mesh import Mesh, Work, finish
from flowsched_torch.wire import (
    Bytes,
    Encoded,
    Schema,
    bulk_bytes,
    column_sizes,
    decode,
    encode,
    is_bulk,
    pack,
    spans,
)

_HEADER = struct.Struct("<BxxxIIIQ")  # kind, numbers, bytes of the schema, bulk columns, bytes of it all
_SAME, _NEW, _ERROR = 0, 1, 2
_PAGE = 4096
_KEPT_BUFFERS = 2
_NOTHING = Encoded((), (), (), (), ())


class UnsendableError(Exception):
    """A batch that could not be sent; the cause is what its sender's process raised."""


def capacity_for(size: int, capacity: int) -> int:
    """Return the capacity of the next message after one of ``size`` bytes: a little more, if it must change."""
    if size <= capacity and (capacity == _PAGE or 4 * size >= capacity):
        return capacity
    return max(-(-(size + size // 8) // _PAGE), 1) * _PAGE


class _Capacities:
    """What both ends of a stream know of the next message."""

    def __init__(self) -> None:
        self.first = _PAGE
        self.bulk: list[int] = []

    def learn(self, size: int, bulk: Sequence[int]) -> None:
        self.first = capacity_for(size, self.first)
        if self.bulk or bulk:
            before = [*self.bulk[: len(bulk)], *([0] * (len(bulk) - len(self.bulk)))]
            self.bulk = [capacity_for(own, old) for own, old in zip(bulk, before, strict=True)]


class Outgoing:
    """The sending end of a stream.

    Args:
        mesh: what connects the ranks.
        peer: who receives.
        tag: tells the stream from others between the two.
        is_awaited: whether the receiver takes each message as soon as it can.
    """

    def __init__(self, mesh: Mesh, peer: int, tag: int, *, is_awaited: bool = True) -> None:
        self._mesh, self.peer, self._tag = mesh, peer, tag
        self.is_awaited = is_awaited
        self._next = _Capacities()
        self._schema: Schema | None = None
        self._place = _Place(0)
        self._works: list[Work] = []
        self._held: Any = None
        self.overflows = False

    def send(self, batch: Batch) -> None:
        """Begin to send a batch; it must not be changed until :meth:`wait` has returned.

        Sets ``overflows`` if the receiver has not posted all that it takes.
        """
        try:
            encoded = encode(batch)
        except Exception as error:  # noqa: BLE001 - whatever it is, who reads the batch is told
            self._send(_NOTHING, _ERROR, pack_error(error))
            return
        if encoded.schema == self._schema:
            self._send(encoded, _SAME, b"")
        else:
            self._send(encoded, _NEW, pickle.dumps(encoded.schema, 5))

    def wait(self) -> None:
        """Wait until all is sent."""
        for work in self._works:
            finish(work)
        self._works.clear()
        self._held = None

    def _send(self, encoded: Encoded, kind: int, beside: bytes) -> None:
        dims, bulk = encoded.dims, [own.nbytes for own in encoded.bulk]
        begin = _HEADER.size + 8 * len(dims) + len(beside)
        begins, stop = spans(encoded.sizes, begin)
        place = self._place = self._place if self._place.size >= stop else _Place(capacity_for(stop, 0))
        _HEADER.pack_into(place.bytes, 0, kind, len(dims), len(beside), len(bulk), stop)
        struct.pack_into(f"<{len(dims)}Q", place.bytes, _HEADER.size, *dims)
        if beside:
            place.bytes[begin - len(beside) : begin] = np.frombuffer(beside, np.uint8)
        pack(encoded, begins, place.bytes)
        self._begin(place.tensor, stop, encoded.bulk, bulk)
        self._schema = encoded.schema if kind != _ERROR else None
        self._next.learn(stop, bulk)

    def _begin(self, packed: torch.Tensor, stop: int, columns: Sequence[Any], bulk: Sequence[int]) -> None:
        """Hand everything to the mesh: the first part, what was posted for large columns, then what was not."""
        fits = stop <= self._next.first
        late: list[torch.Tensor] = [] if fits else [packed[:stop]]
        send, held = self._mesh.send, list(columns)
        self._works.append(send(packed[: stop if fits else _HEADER.size], self.peer, self._tag))
        for at, posted in enumerate(self._next.bulk):
            if at < len(bulk) and bulk[at] <= posted:
                own = bulk_bytes(columns[at])
            else:
                own = packed[:0]
                late += [bulk_bytes(columns[at])] if at < len(bulk) else []
            held.append(own)
            self._works.append(send(own, self.peer, self._tag))
        late += [bulk_bytes(column) for column in columns[len(self._next.bulk) :]]
        self._works += [send(own, self.peer, self._tag) for own in late]
        self._held = (held, late)
        self.overflows = bool(late)


class Incoming:
    """The receiving end of a stream; the arguments are those of :class:`Outgoing`."""

    def __init__(self, mesh: Mesh, peer: int, tag: int) -> None:
        self._mesh, self.peer, self._tag = mesh, peer, tag
        self._next = _Capacities()
        self._schema: Schema = ()
        self._first = _Places()
        self._bulk: list[_Places] = []
        self._posted: list[tuple[_Place, Work]] = []
        self.batch: Batch = None
        self.is_here = False

    def post(self) -> None:
        """Post the receive of the next message, unless it is posted."""
        if self._posted:
            return
        self._post(self._first.take(self._next.first), self._next.first)
        for at, capacity in enumerate(self._next.bulk):
            self._post(self._places(at).take(capacity), capacity)

    def take(self) -> Batch:
        """Wait for the message and return its batch; the same one until :meth:`release`.

        Raises:
            UnsendableError: its sender could not send it.
        """
        if self.is_here:
            return self.batch
        self.post()
        place = self._wait(0)
        kind, count, beside, large, size = _HEADER.unpack_from(place.bytes, 0)
        posted = [self._wait(at) for at in range(1, len(self._posted))]
        self._posted.clear()
        if size > self._next.first:
            place = self._receive(self._first, size)
        begin = _HEADER.size + 8 * count
        dims = struct.unpack_from(f"<{count}Q", place.bytes, _HEADER.size)
        if kind == _ERROR:
            raise UnsendableError from unpack_error(place.bytes[begin : begin + beside].tobytes())
        if kind == _NEW:
            self._schema = pickle.loads(place.bytes[begin : begin + beside])
        self.batch = self._decode(dims, place, begin + beside, posted)
        self.is_here = True
        return self.batch

    def release(self) -> None:
        """Let go of the batch."""
        self.batch = None
        self.is_here = False

    def _decode(self, dims: Sequence[int], place: _Place, begin: int, posted: Sequence[_Place]) -> Batch:
        with_bytes = [column for column in self._schema if column.code not in ("none", "empty")]
        sizes = column_sizes(self._schema, dims)
        large = [is_bulk(column, size) for column, size in zip(with_bytes, sizes, strict=True)]
        begins, stop = spans([size for size, own in zip(sizes, large, strict=True) if not own], begin)
        bulk = [size for size, own in zip(sizes, large, strict=True) if own]
        columns = [
            posted[at]
            if at < len(posted) and size <= self._next.bulk[at]
            else self._receive(self._places(at), size)
            for at, size in enumerate(bulk)
        ]
        self._next.learn(stop, bulk)
        places: list[Bytes] = []
        small, big = iter(begins), iter(columns)
        for size, own in zip(sizes, large, strict=True):
            if own:
                places.append(next(big).bytes[:size])
            else:
                at = next(small)
                places.append(place.bytes[at : at + size])
        return decode(self._schema, dims, places)

    def _post(self, place: _Place, capacity: int) -> None:
        self._posted.append((place, self._mesh.receive(place.tensor[:capacity], self.peer, self._tag)))

    def _wait(self, at: int) -> _Place:
        place, work = self._posted[at]
        finish(work)
        return place

    def _receive(self, places: _Places, size: int) -> _Place:
        place = places.take(size)
        finish(self._mesh.receive(place.tensor[:size], self.peer, self._tag))
        return place

    def _places(self, at: int) -> _Places:
        while len(self._bulk) <= at:
            self._bulk.append(_Places())
        return self._bulk[at]


class _Place:
    """Memory that messages are written into."""

    __slots__ = ("bytes", "size", "tensor")

    def __init__(self, size: int) -> None:
        self.size = size
        self.bytes: Bytes = np.empty(size, np.uint8)
        self.tensor = torch.from_numpy(self.bytes)

    def is_free(self) -> bool:
        """Whether no batch refers to the memory."""
        return _count_own(self) <= _UNUSED


def _count_own(place: _Place) -> int:
    return sys.getrefcount(place.bytes)


_UNUSED = _count_own(_Place(1))


class _Places:
    """A few places used in turn; one that a batch still refers to is left to it."""

    def __init__(self) -> None:
        self._kept: list[_Place] = []

    def take(self, size: int) -> _Place:
        """Return a free place of at least ``size`` bytes."""
        for place in self._kept:
            if place.size >= size and place.is_free():
                return place
        place = _Place(size)
        self._kept = [place, *(own for own in self._kept if own.size >= size)][:_KEPT_BUFFERS]
        return place


class Signal:
    """A message without rows: that calls have ended. One end of it; the arguments are those of the others."""

    def __init__(self, mesh: Mesh, peer: int, tag: int) -> None:
        self._mesh, self._peer, self._tag = mesh, peer, tag
        self._nothing = torch.empty(0, dtype=torch.uint8)
        self._work: Work | None = None

    def send(self) -> None:
        """Begin to send it."""
        self._work = self._mesh.send(self._nothing, self._peer, self._tag)

    def post(self) -> None:
        """Post its receive, unless it is posted."""
        if self._work is None:
            self._work = self._mesh.receive(self._nothing, self._peer, self._tag)

    def wait(self) -> None:
        """Wait until it is sent, or here."""
        if self._work is not None:
            finish(self._work)
            self._work = None
