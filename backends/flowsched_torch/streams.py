"""Messages of one number, step after step: how large they may be is known on both sides from those before.

Each message begins with one part of a fixed capacity: a header, the shapes, and what fits in. What does not fit
follows in a second part of exact size. Large columns follow one by one, each into memory that the receiver has
posted for one as large as last time, where it fits, and otherwise into memory of its exact size. Both sides draw
the same conclusions from what was sent, so that nothing needs to be asked for.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from flowsched.backend import pack_error, unpack_error
from flowsched.batch import Batch
from flowsched_torch.mesh import Mesh, Work, finish
from flowsched_torch.places import Place, Places
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
_SAME, _NEW, _ERROR, _VOID = 0, 1, 2, 3
_PAGE = 4096
_NOTHING = Encoded((), (), (), (), ())


class UnsendableError(Exception):
    """A batch that could not be sent; the cause is what its sender's process raised."""


class VoidError(Exception):
    """A message that says that the step is none, though its receives were posted."""


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

    Attributes:
        overflows: whether the receiver had not posted all that the last message takes.
    """

    def __init__(self, mesh: Mesh, peer: int, tag: int, *, is_awaited: bool = True) -> None:
        self._send_to, self.peer, self._tag = mesh.send, peer, tag
        self.is_awaited = is_awaited
        self._next = _Capacities()
        self._schema: Schema | None = None
        self._place = Place(0)
        self._works: list[Work] = []
        self._held: Any = None
        self.overflows = False
        # What the last batch was, where it was one small array or tensor, and where its numbers and the message are.
        self._like: tuple[type, Any, Any] | None = None
        self._numbers: Any = None
        self._message: list[torch.Tensor] = []

    def send(self, batch: Batch) -> None:
        """Begin to send a batch; it must not be changed until :meth:`wait` has returned."""
        if self._works:
            self.wait()
        if self._is_as_last(batch):
            if type(batch) is torch.Tensor:
                self._numbers.copy_(batch)
            else:
                np.copyto(self._numbers, batch)
            self._works.append(self._send_to(self._message, self.peer, self._tag))
            self.overflows = False
            self._held = None
            return
        self._like = None
        try:
            encoded = encode(batch)
        except Exception as error:  # noqa: BLE001 - whatever it is, who reads the batch is told
            self._send(_NOTHING, _ERROR, pack_error(error))
            return
        if encoded.schema == self._schema:
            self._send(encoded, _SAME, b"")
            self._remember(batch, encoded)
        else:
            self._send(encoded, _NEW, pickle.dumps(encoded.schema, 5))

    def send_void(self) -> None:
        """Send no batch, but the word that the step is none."""
        if self._works:
            self.wait()
        self._like = None
        self._send(_NOTHING, _VOID, b"")

    def wait(self) -> None:
        """Wait until all is sent."""
        if self._works:
            for work in self._works:
                finish(work)
            self._works.clear()
            self._held = None

    def settle(self) -> None:
        """Wait until all is sent that others have a part in: large columns, and what was not posted."""
        if self._held is not None:
            self.wait()

    def _is_as_last(self, batch: Batch) -> bool:
        like = self._like
        if like is None or type(batch) is not like[0] or batch.dtype != like[1] or batch.shape != like[2]:
            return False
        return like[0] is np.ndarray or not batch.requires_grad

    def _remember(self, batch: Batch, encoded: Encoded) -> None:
        """Note where in the message the numbers of a batch are that is one small array or tensor."""
        if type(batch) not in (np.ndarray, torch.Tensor) or not encoded.packed or not encoded.sizes[0]:
            return
        size = encoded.sizes[0]
        (begin,), stop = spans((size,), _HEADER.size + 8 * len(encoded.dims))
        numbers = self._place.bytes[begin : begin + size]
        if type(batch) is np.ndarray:
            self._numbers = numbers.view(batch.dtype).reshape(batch.shape)
        else:
            self._numbers = torch.from_numpy(numbers).view(batch.dtype).view(batch.shape)
        self._message = [self._place.tensor[:stop]]
        self._like = type(batch), batch.dtype, batch.shape

    def _send(self, encoded: Encoded, kind: int, beside: bytes) -> None:
        dims, bulk = encoded.dims, [own.nbytes for own in encoded.bulk]
        begin = _HEADER.size + 8 * len(dims) + len(beside)
        begins, stop = spans(encoded.sizes, begin)
        if self._place.size < stop:
            self._place = Place(capacity_for(stop, 0))
        place = self._place
        _HEADER.pack_into(place.bytes, 0, kind, len(dims), len(beside), len(bulk), stop)
        struct.pack_into(f"<{len(dims)}Q", place.bytes, _HEADER.size, *dims)
        if beside:
            place.bytes[begin - len(beside) : begin] = np.frombuffer(beside, np.uint8)
        pack(encoded, begins, place.bytes)
        self._begin(place.tensor, stop, encoded.bulk, bulk)
        if kind != _VOID:
            self._schema = encoded.schema if kind != _ERROR else None
            self._next.learn(stop, bulk)

    def _begin(self, packed: torch.Tensor, stop: int, columns: Sequence[Any], bulk: Sequence[int]) -> None:
        """Hand everything to the mesh: the first part, what was posted for large columns, then what was not."""
        fits = stop <= self._next.first
        parts = [packed[: stop if fits else _HEADER.size]]
        late: list[torch.Tensor] = [] if fits else [packed[:stop]]
        for at, posted in enumerate(self._next.bulk):
            if at < len(bulk) and bulk[at] <= posted:
                parts.append(bulk_bytes(columns[at]))
            else:
                parts.append(packed[:0])
                late += [bulk_bytes(columns[at])] if at < len(bulk) else []
        late += [bulk_bytes(column) for column in columns[len(self._next.bulk) :]]
        self._works += [self._send_to([part], self.peer, self._tag) for part in (*parts, *late)]
        self._held = (columns, parts, late) if bulk or late else None
        self.overflows = bool(late)


class Incoming:
    """The receiving end of a stream; the arguments are those of :class:`Outgoing`."""

    def __init__(self, mesh: Mesh, peer: int, tag: int) -> None:
        self._receive_from, self.peer, self._tag = mesh.receive, peer, tag
        self._next = _Capacities()
        self._schema: Schema = ()
        self._first = Places()
        self._bulk: list[Places] = []
        self._posted: list[tuple[Place, Work]] = []
        self.batch: Batch = None
        self.is_here = False
        # The beginning of the last message, where it was one small array or tensor, and where its numbers were.
        self._head = b""
        self._begin = 0

    def post(self) -> None:
        """Post the receive of the next message, unless it is posted."""
        if self._posted or self.is_here:
            return
        size = self._next.first
        place = self._first.take(size)
        self._posted.append((place, self._receive_from(place.first(size), self.peer, self._tag)))
        for at, capacity in enumerate(self._next.bulk):
            self._post(self._places(at).take(capacity), capacity)

    def take(self) -> Batch:
        """Wait for the message and return its batch; the same one until :meth:`release`.

        Raises:
            UnsendableError: its sender could not send it.
            VoidError: there is none, as the step is none.
        """
        if self.is_here:
            return self.batch
        if not self._posted:
            self.post()
        place, work = self._posted[0]
        finish(work)
        if self._head and place.begins_with(self._head):
            self._posted.clear()
            self.batch = place.numbers(self._schema[0], self._begin, self._head)
            self.is_here = True
            return self.batch
        self.batch = self._look_into(place)
        self.is_here = True
        return self.batch

    def release(self) -> None:
        """Let go of the batch."""
        self.batch = None
        self.is_here = False

    def _look_into(self, place: Place) -> Batch:
        kind, count, beside, _, size = _HEADER.unpack_from(place.bytes, 0)
        posted = [self._wait(at) for at in range(1, len(self._posted))]
        self._posted.clear()
        self._head = b""
        if kind == _VOID:
            self.is_here = True
            raise VoidError
        if size > self._next.first:
            place = self._receive(self._first, size)
        begin = _HEADER.size + 8 * count
        dims = struct.unpack_from(f"<{count}Q", place.bytes, _HEADER.size)
        if kind == _ERROR:
            raise UnsendableError from unpack_error(place.bytes[begin : begin + beside].tobytes())
        if kind == _NEW:
            self._schema = pickle.loads(place.bytes[begin : begin + beside])
        batch = self._decode(dims, place, begin + beside, posted)
        if kind == _SAME:
            self._remember(place, begin)
        return batch

    def _remember(self, place: Place, begin: int) -> None:
        """Note how a message begins that is one small array or tensor, for the next to be known by."""
        if len(self._schema) == 1 and not self._next.bulk:
            column = self._schema[0]
            if column.code in ("numpy", "torch") and not column.path:
                self._head = place.bytes[:begin].tobytes()
                self._begin = begin

    def _decode(self, dims: Sequence[int], place: Place, begin: int, posted: Sequence[Place]) -> Batch:
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

    def _post(self, place: Place, capacity: int) -> None:
        work = self._receive_from(place.first(capacity), self.peer, self._tag)
        self._posted.append((place, work))

    def _wait(self, at: int) -> Place:
        place, work = self._posted[at]
        finish(work)
        return place

    def _receive(self, places: Places, size: int) -> Place:
        place = places.take(size)
        finish(self._receive_from(place.first(size), self.peer, self._tag))
        return place

    def _places(self, at: int) -> Places:
        while len(self._bulk) <= at:
            self._bulk.append(Places())
        return self._bulk[at]


class Signal:
    """A message without rows: that calls have ended. One end of it; the arguments are those of the others."""

    def __init__(self, mesh: Mesh, peer: int, tag: int) -> None:
        self._mesh, self._peer, self._tag = mesh, peer, tag
        self._nothing = [torch.empty(0, dtype=torch.uint8)]
        self._work: Work | None = None

    def send(self) -> None:
        """Begin to send it."""
        self.wait()
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

    def settle(self) -> None:
        """Nobody needs to wait for so little: the next one does."""
