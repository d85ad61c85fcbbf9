"""The connections between ranks: one gloo group of our own, beside whatever groups the program has."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

import torch.distributed as dist

FOREVER = timedelta(days=365)  # a call takes as long as it takes; failures come by the control plane
_FILES = Path("/proc/self/fd")


Work: TypeAlias = Any
"""What gloo returns for a message under way: to be waited for by :func:`finish`."""


def finish(work: Work) -> None:
    """Wait until a message is sent or received.

    Raises:
        RuntimeError: the connection is lost.
    """
    work.wait(FOREVER)


class Mesh:
    """Point-to-point messages between all ranks of a session.

    Args:
        store: where the ranks find each other.
        rank: this one.
        size: how many there are.
        host: the address of this machine that the others reach; None for the one gloo finds.
        interface: the network interface instead.
        timeout: seconds that the ranks have to find each other.
        is_cuttable: whether :meth:`cut` will be asked for, on any rank.

    Attributes:
        send: ``send([tensor], peer, tag)`` begins to send; the tensor must live until its work is finished.
        receive: ``receive([tensor], peer, tag)`` begins to receive at most as many bytes as the tensor has.

    Raises:
        RuntimeError: they did not find each other in time, or the address is none of this machine.
    """

    def __init__(
        self,
        store: Any,
        rank: int,
        size: int,
        *,
        host: str | None = None,
        interface: str | None = None,
        timeout: float = 60.0,
        is_cuttable: bool = False,
    ) -> None:
        self.rank, self.size = rank, size
        before = _open_sockets()
        group_kind: Any = dist.ProcessGroupGloo
        options = group_kind._Options()
        options._devices = [group_kind.create_device(hostname=host or "", interface=interface or "")]
        options._timeout = timedelta(seconds=timeout)
        options._threads = 1
        listener = _find_listener(_open_sockets() - before)
        group: Any = group_kind(store, rank, size, options)
        self._group: Any = group
        self.send: Any = group.send
        self.receive: Any = group.recv
        self._sockets = _open_sockets() - before
        self._ports = _exchange(store, rank, size, listener) if is_cuttable else []

    def cut(self) -> None:
        """Cut all connections, from any thread: whoever waits for a message raises RuntimeError at once.

        Gloo itself frees nobody who waits in another thread.
        """
        for number, inode in self._sockets if self._ports else ():
            with suppress(OSError), socket.socket(fileno=os.dup(number)) as pair:
                if os.fstat(number).st_ino == inode and self._is_ours(pair):
                    pair.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Leave the group."""
        self._group = self.send = self.receive = None

    def _is_ours(self, pair: socket.socket) -> bool:
        """Whether a socket connects two of the ranks; others may have been opened at the same time."""
        if pair.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            return False
        return pair.getsockname()[1] == self._ports[self.rank] or pair.getpeername()[1] in self._ports


def _open_sockets() -> set[tuple[int, int]]:
    """Return number and inode of each socket that this process has open; none where that cannot be told."""
    found = set()
    with suppress(OSError):
        for path in _FILES.iterdir():
            with suppress(OSError):
                state = os.fstat(int(path.name))
                if stat.S_ISSOCK(state.st_mode):
                    found.add((int(path.name), state.st_ino))
    return found


def _find_listener(sockets: Iterable[tuple[int, int]]) -> int:
    """Return the port at which gloo waits for others; 0 where it cannot be told."""
    for number, _ in sockets:
        with suppress(OSError), socket.socket(fileno=os.dup(number)) as found:
            if found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                return int(found.getsockname()[1])
    return 0


def _exchange(store: Any, rank: int, size: int, port: int) -> list[int]:
    """Return the port of each rank."""
    store.set(f"port-{rank}", str(port))
    return [int(store.get(f"port-{other}")) for other in range(size)]
