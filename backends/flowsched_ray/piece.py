"""What one channel of a compiled graph carries: a fragment, or an output."""

from __future__ import annotations

import pickle
import struct
import sys
from typing import Any, NamedTuple

from flowsched.backend import Seen
from flowsched_ray.packet import pack, unpack

News = tuple[tuple[int, int, Seen], ...]
"""By node and replica, what was seen of outputs, where that is not as the replica told last."""

_HEAD = struct.Struct("<qq")
"""Number of the step, and whether what follows is a pickled piece; if not, it is packed rows."""


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


def pack_piece(piece: Piece) -> bytes:
    """Return a piece as a channel carries it: always bytes, which Ray copies out of the channel.

    Anything else would stay in the channel's memory: it would have to be let go of before the channel is written to
    again, and before Ray is shut down. Freed after that, as by an error that somebody keeps, it ends the process.
    """
    packed = None if piece.news else pack(_HEAD.pack(piece.step, False), piece.rows, most=sys.maxsize)
    return _HEAD.pack(piece.step, True) + pickle.dumps(piece, protocol=5) if packed is None else packed


def unpack_piece(carried: bytes) -> Piece:
    """Return the piece that a channel carried."""
    step, is_pickled = _HEAD.unpack_from(carried)
    if not is_pickled:
        return Piece(step, (), unpack(carried, _HEAD.size))
    piece: Piece = pickle.loads(memoryview(carried)[_HEAD.size :])
    return piece
