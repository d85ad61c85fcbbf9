"""The sending end of a stream of messages, to one rank or the same to several."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import torch

from flowsched.batch import Batch
from flowsched_torch.direct import Direct
from flowsched_torch.mesh import FOREVER, Mesh, Work
from flowsched_torch.messages import HEADER, NEW, SAME, VOID, Capacities, UnsendableError, capacity_for
from flowsched_torch.places import Place
from flowsched_torch.wire import Encoded, Schema, bulk_bytes, encode, pack, spans

End: TypeAlias = tuple[int, int]
"""Rank and tag."""

_NOTHING = Encoded((), (), (), (), ())


class Outgoing:
    """The sending end of a stream.

    Args:
        mesh: what connects the ranks.
        to: who receives, each with a tag that tells the stream from others between the two.
        is_awaited: whether the receivers take each message as soon as they can.
        direct: what tensors on accelerators go by; None where they go by the host.

    Attributes:
        overflows: whether the receivers had not posted all that the last message takes.
    """

    def __init__(
        self, mesh: Mesh, to: Sequence[End], *, is_awaited: bool = True, direct: Direct | None = None
    ) -> None:
        self._direct = direct
        self._send_to, self.to = mesh.send, to
        self.is_awaited = is_awaited
        self._next = Capacities()
        self._schema: Schema | None = None
        self._place = Place(0)
        self._works: list[Work] = []
        self._held: Any = None
        self.overflows = False
        # What the last batch was, if one small array or tensor, and where its numbers and the message are.
        self._like: tuple[Any, Any, Any] | None = None
        self._numbers: Any = None
        self._message: list[torch.Tensor] = []

    def send(self, batch: Batch) -> None:
        """Begin to send a batch; it must not be changed until :meth:`wait` has returned.

        Raises:
            UnsendableError: it cannot be; the cause says why.
        """
        if self._works:
            self.wait()
        if self._is_as_last(batch):
            if type(batch) is torch.Tensor:
                self._numbers.copy_(batch)
            else:
                np.copyto(self._numbers, batch)
            for peer, tag in self.to:
                self._works.append(self._send_to(self._message, peer, tag))
            self.overflows = False
            self._held = None
            return
        self._like = None
        try:
            encoded = encode(batch, None if self._direct is None else self._direct.takes)
        except Exception as error:  # what is pickled may refuse in any way
            raise UnsendableError from error
        if encoded.schema == self._schema:
            self._send(encoded, SAME, b"")
            self._remember(batch, encoded)
        else:
            self._send(encoded, NEW, pickle.dumps(encoded.schema, 5))

    def send_void(self) -> None:
        """Send no batch, but the word that the step is none."""
        if self._works:
            self.wait()
        self._like = None
        self._send(_NOTHING, VOID, b"")

    def wait(self) -> None:
        """Wait until all is sent."""
        if self._works:
            for work in self._works:
                work.wait(FOREVER)
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
        if like[0] is np.ndarray:
            return True
        return not batch.requires_grad and (self._direct is None or not self._direct.takes(batch))

    def _remember(self, batch: Batch, encoded: Encoded) -> None:
        """Note where in the message the numbers of a batch are that is one small array or tensor."""
        if type(batch) not in (np.ndarray, torch.Tensor) or not encoded.packed or not encoded.sizes[0]:
            return
        size = encoded.sizes[0]
        (begin,), stop = spans((size,), HEADER.size + 8 * len(encoded.dims))
        numbers = self._place.bytes[begin : begin + size]
        if type(batch) is np.ndarray:
            self._numbers = numbers.view(batch.dtype).reshape(batch.shape)
        else:
            self._numbers = torch.from_numpy(numbers).view(batch.dtype).view(batch.shape)
        self._message = [self._place.tensor[:stop]]
        self._like = type(batch), batch.dtype, batch.shape

    def _send(self, encoded: Encoded, kind: int, beside: bytes) -> None:
        dims, bulk = encoded.dims, [own.nbytes for own in encoded.bulk]
        begin = HEADER.size + 8 * len(dims) + len(beside)
        begins, stop = spans(encoded.sizes, begin)
        if self._place.size < stop:
            self._place = Place(capacity_for(stop, 0))
        place = self._place
        HEADER.pack_into(place.memory, 0, kind, len(dims), len(beside), len(bulk), stop)
        struct.pack_into(f"<{len(dims)}Q", place.memory, HEADER.size, *dims)
        if beside:
            place.bytes[begin - len(beside) : begin] = np.frombuffer(beside, np.uint8)
        pack(encoded, begins, place.bytes)
        self._begin(place.tensor, stop, encoded.bulk, bulk)
        if encoded.direct and self._direct is not None:
            self._works += [
                self._direct.send(tensor, peer) for peer, _ in self.to for tensor in encoded.direct
            ]
            self._held = (self._held, encoded.direct)
        if kind != VOID:
            self._schema = encoded.schema
            self._next.learn(stop, bulk)

    def _begin(self, packed: torch.Tensor, stop: int, columns: Sequence[Any], bulk: Sequence[int]) -> None:
        """Hand everything to the mesh: the first part, what was posted for large columns, then what was not."""
        fits = stop <= self._next.first
        parts = [packed[: stop if fits else HEADER.size]]
        late: list[torch.Tensor] = [] if fits else [packed[:stop]]
        for at, posted in enumerate(self._next.bulk):
            if at < len(bulk) and bulk[at] <= posted:
                parts.append(bulk_bytes(columns[at]))
            else:
                parts.append(packed[:0])
                late += [bulk_bytes(columns[at])] if at < len(bulk) else []
        late += [bulk_bytes(column) for column in columns[len(self._next.bulk) :]]
        self._works += [self._send_to([part], peer, tag) for peer, tag in self.to for part in (*parts, *late)]
        self._held = (columns, parts, late) if bulk or late else None
        self.overflows = bool(late)
