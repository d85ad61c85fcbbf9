"""Home's end of the control plane: tells all ranks, hears all ranks, notices at once when one is gone."""

from __future__ import annotations

import selectors
import socket
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from flowsched_torch.control import Connection, Frame, Kind

_PINGS = 4  # in the time after which a rank that says nothing is given up


class SilentError(Exception):
    """A rank has not answered for too long."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        super().__init__(rank)


class GoneError(Exception):
    """The connection to a rank has ended."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        super().__init__(rank)


class Hub:
    """The connections to all ranks.

    Args:
        orders: by rank, what its main thread reads.
        alarms: by rank, what a thread of its own reads, also while a worker is busy.
        timeout: seconds after which a rank that does not answer is given up.
    """

    def __init__(
        self,
        orders: Mapping[int, Connection],
        alarms: Mapping[int, Connection],
        timeout: float,
    ) -> None:
        self._orders, self._alarms = orders, alarms
        self._timeout = timeout
        self._selector = selectors.DefaultSelector()
        for connections in (orders, alarms):
            for rank, connection in connections.items():
                self._selector.register(connection, selectors.EVENT_READ, (rank, connection))
        self._woken, self._waker = socket.socketpair()
        self._selector.register(self._woken, selectors.EVENT_READ, None)
        self._asked = time.monotonic()  # when all were last asked whether they are there
        self._heard = dict.fromkeys(orders, self._asked)
        self._arrived: deque[tuple[int, Frame]] = deque()
        self._gone: list[int] = []

    def order(self, kind: Kind, number: int = 0, payload: bytes = b"") -> None:
        """Tell the main thread of every rank."""
        for connection in self._orders.values():
            connection.send(kind, number, payload)

    def alarm(self, kind: Kind, number: int = 0, payload: bytes = b"") -> None:
        """Tell every rank something that cannot wait for its main thread."""
        for connection in self._alarms.values():
            connection.send(kind, number, payload)

    def wake(self) -> None:
        """Let :meth:`hear` return, from another thread."""
        with suppress(OSError):
            self._waker.send(b"x")

    def hear(self) -> Sequence[tuple[int, Frame]]:
        """Wait until something arrives, or :meth:`wake` is called, and return what did, by rank.

        Raises:
            GoneError: a connection has ended; what ranks said before was returned before.
            SilentError: a rank does not answer.
        """
        if self._gone and not self._arrived:
            raise GoneError(self._gone[0])
        if not self._arrived:
            self._wait()
        heard = list(self._arrived)
        self._arrived.clear()
        return heard

    def rest(self) -> Sequence[tuple[int, Frame]]:
        """Return what has arrived already."""
        while ready := self._selector.select(0):
            self._read(ready)
        heard = list(self._arrived)
        self._arrived.clear()
        return heard

    def settle(self, seconds: float) -> Iterator[tuple[int, Frame]]:
        """Yield what still arrives within some seconds, of ranks that are there and of others."""
        until = time.monotonic() + seconds
        while True:
            yield from self._arrived
            self._arrived.clear()
            left = until - time.monotonic()
            if left <= 0:
                return
            self._read(self._selector.select(left))

    @property
    def gone(self) -> Sequence[int]:
        """The ranks whose connections have ended, in the order in which that was noticed."""
        return self._gone

    def close(self) -> None:
        """End all connections."""
        self._selector.close()
        for connections in (self._orders, self._alarms):
            for connection in connections.values():
                connection.close()
        self._woken.close()
        self._waker.close()

    def _wait(self) -> None:
        self._read(self._selector.select(self._timeout / _PINGS))
        now = time.monotonic()
        if now - self._asked < self._timeout / _PINGS:
            return
        silent = [rank for rank, heard in self._heard.items() if heard < self._asked]
        if not silent:
            self._asked = now
            self.alarm(Kind.PING)
        elif now - self._asked > self._timeout:
            raise SilentError(silent[0])

    def _read(self, ready: Sequence[tuple[selectors.SelectorKey, int]]) -> None:
        for key, _ in ready:
            if key.data is None:
                self._woken.recv(4096)
                continue
            rank, connection = key.data
            for frame in connection.drain():
                if frame.kind is not Kind.PONG:
                    self._arrived.append((rank, frame))
            self._heard[rank] = time.monotonic()
            if not connection.is_open:
                self._selector.unregister(connection)
                if rank not in self._gone:
                    self._gone.append(rank)
