"""The receiving end of a stream of messages."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Sequence

import torch

from flowsched.batch import Batch
from flowsched_torch.direct import Direct
from flowsched_torch.mesh import FOREVER, Mesh, Work, finish
from flowsched_torch.messages import HEADER, NEW, SAME, VOID, Capacities, UnsendableError, VoidError
from flowsched_torch.places import Place, Places
from flowsched_torch.wire import Bytes, Schema, column_sizes, decode, direct_shapes, is_bulk, spans


class Incoming:
    """The receiving end of a stream.

    Args:
        mesh: what connects the ranks.
        peer: who sends.
        tag: tells the stream from others between the two.
        direct: what tensors on accelerators go by; None where they go by the host.
    """

    def __init__(self, mesh: Mesh, peer: int, tag: int, *, direct: Direct | None = None) -> None:
        self._direct = direct
        self._failure: UnsendableError | None = None
        self._receive_from, self.peer, self._tag = mesh.receive, peer, tag
        self._next = Capacities()
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
        if self._next.bulk:
            self._post_bulk()

    def take(self) -> Batch:
        """Wait for the message and return its batch; the same one until :meth:`release`.

        Raises:
            UnsendableError: it cannot be read here.
            VoidError: there is none, as the step is none.
        """
        if self.is_here:
            return self.batch
        if self._failure is not None:
            raise self._failure
        if not self._posted:
            self.post()
        place, work = self._posted[0]
        work.wait(FOREVER)  # here and below what is done for each small message stands in one function
        head = self._head
        if head and place.memory[: len(head)] == head:
            self._posted.clear()
            self.batch = place.numbers(self._schema[0], self._begin, head)
            self.is_here = True
            return self.batch
        try:
            self.batch = self._look_into(place)
        except UnsendableError as error:
            self._failure = error  # whoever takes it again is told the same
            raise
        self.is_here = True
        return self.batch

    def release(self) -> None:
        """Let go of the batch."""
        self.batch = None
        self.is_here = False

    def _look_into(self, place: Place) -> Batch:
        kind, count, beside, _, size = HEADER.unpack_from(place.memory, 0)
        posted = [self._wait(at) for at in range(1, len(self._posted))]
        self._posted.clear()
        self._head = b""
        if kind == VOID:
            self.is_here = True
            raise VoidError
        if size > self._next.first:
            place = self._receive(self._first, size)
        begin = HEADER.size + 8 * count
        dims = struct.unpack_from(f"<{count}Q", place.memory, HEADER.size)
        if kind == NEW:
            self._schema = pickle.loads(place.memory[begin : begin + beside])
        batch = self._decode(dims, place, begin + beside, posted)
        if kind == SAME:
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
        with_bytes = [column for column in self._schema if column.code not in ("none", "empty", "direct")]
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
        return decode(self._schema, dims, places, self._receive_direct(dims))

    def _receive_direct(self, dims: Sequence[int]) -> list[torch.Tensor]:
        if self._direct is None:
            return []
        tensors = []
        for shape, dtype in direct_shapes(self._schema, dims):
            tensor = torch.empty(shape, dtype=dtype, device=self._direct.device)
            self._direct.receive(tensor, self.peer)
            tensors.append(tensor)
        return tensors

    def _post_bulk(self) -> None:
        for at, capacity in enumerate(self._next.bulk):
            place = self._places(at).take(capacity)
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
