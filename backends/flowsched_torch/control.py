"""The control plane: small messages between home and each rank, beside the data."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from enum import IntEnum
from typing import NamedTuple

_HEADER = struct.Struct("<BxxxIQ")
_CHUNK = 1 << 20


class Kind(IntEnum):
    """What a message of the control plane says."""

    # from home
    JOIN = 1  # connect to the others; the payload says where
    PLAN = 2  # a plan, by the number that steps call it
    STEP = 3  # run a step
    FORGET = 4  # a plan that will not be run again
    OVER = 5  # the session is over; the payload is why, or empty
    PING = 6
    AGREED = 7  # the samples of the next step
    DONE = 8  # all ranks have ended the step
    REFUSED = 9  # the next step does not begin; the payload is why
    # from ranks
    BUILT = 20  # a replica is there
    READY = 21  # all replicas of the rank are there
    JOINED = 22
    ENDED = 23  # the rank's part of the step, or that of all local ranks
    EVENT = 24
    LOOK = 25  # an output of this call is under way for which home has not posted all memory
    FAILED = 26  # a failure of the user's; the payload is the error
    BROKEN = 27  # a connection was lost: somebody else's failure, probably
    PONG = 28
    SEEN = 29  # what the rank has seen of outputs, where that is news
    WORD = 30  # whether the rank begins the next step
    # from the process that ranks are forked from
    EXITED = 40  # the process of a rank has ended, with this status
    FORKED = 41
    FORK = 42
    KILL = 43


class Frame(NamedTuple):
    """One message: what it says, a small number, bytes."""

    kind: Kind
    number: int
    payload: bytes


class Connection:
    """One end of a stream of frames."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._received = bytearray()
        self.is_open = True

    def fileno(self) -> int:
        """Return the number of the socket's file."""
        return self._socket.fileno()

    def limit(self, seconds: float) -> None:
        """Take the other end for gone when :meth:`receive` has heard nothing for so long."""
        self._socket.settimeout(seconds)

    def send(self, kind: Kind, number: int = 0, payload: bytes = b"") -> bool:
        """Send a frame; False where the other end is gone."""
        header = _HEADER.pack(kind, number, len(payload))
        try:
            self._socket.sendall(header + payload if len(payload) < _CHUNK else header)
            if len(payload) >= _CHUNK:
                self._socket.sendall(payload)
        except OSError:
            return False
        return True

    def receive(self) -> Frame | None:
        """Wait for the next frame; None when the other end is gone."""
        while (frame := self._next()) is None:
            try:
                received = self._socket.recv(_CHUNK)
            except OSError:
                received = b""
            if not received:
                self.is_open = False
                return None
            self._received += received
        return frame

    def drain(self) -> list[Frame]:
        """Return what is there, without waiting; ``is_open`` is False once the other end is gone."""
        frames: list[Frame] = []
        while self.is_open:
            try:
                received = self._socket.recv(_CHUNK, socket.MSG_DONTWAIT)
            except (BlockingIOError, InterruptedError):
                break
            except OSError:
                received = b""
            self.is_open = bool(received)
            self._received += received
            if len(received) < _CHUNK:
                break
        while (frame := self._next()) is not None:
            frames.append(frame)
        return frames

    def cut(self) -> None:
        """End the connection, from any thread: who waits at either end is told that the other is gone."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End the connection and let go of it."""
        self.cut()
        self._socket.close()

    def _next(self) -> Frame | None:
        held = self._received
        if len(held) < _HEADER.size:
            return None
        kind, number, size = _HEADER.unpack_from(held)
        end = _HEADER.size + size
        if len(held) < end:
            return None
        payload = bytes(held[_HEADER.size : end])
        del held[:end]
        return Frame(Kind(kind), number, payload)
