"""What one channel of a compiled graph carries: a fragment, or an output."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from flowsched.backend import Seen
from flowsched_ray.packet import pack, unpack

News = tuple[tuple[int, int, Seen], ...]
"""By node and replica, what was seen of outputs, where that is not as the replica told last."""

_HEAD = struct.Struct("<q")


class Piece(NamedTuple):
    """A fragment or an output on its way.

    Attributes:
        step: number of the step.
        news: of the call that made it, and of all calls before it.
        rows: the rows, as they cross.
    """

    step: int
    news: News
    rows: Any


def pack_piece(piece: Piece) -> Piece | bytes:
    """Return a piece as a channel takes it: as bytes where that is cheaper, which it is without news."""
    packed = None if piece.news else pack(_HEAD.pack(piece.step), piece.rows)
    return piece if packed is None else packed


def unpack_piece(carried: Piece | bytes) -> Piece:
    """Return the piece that a channel carried."""
    if type(carried) is bytes:
        return Piece(_HEAD.unpack_from(carried)[0], (), unpack(carried, _HEAD.size))
    return carried  # type: ignore[return-value] # which mypy takes for bytes of a subclass
