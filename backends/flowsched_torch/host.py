"""The process that local ranks are forked from: it has torch loaded, one thread, and nothing of the user's.

Forking it takes milliseconds where starting a process with torch takes seconds, and the user's program, which may
have threads, is neither forked nor imported anew.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from contextlib import suppress
from typing import NoReturn

from flowsched_torch.control import Connection, Kind

_ENDS = 5  # files of each rank: its two connections, the board, and both ends of the arrivals


def main(number: int) -> NoReturn:
    """Fork ranks for the process at the other end of socket ``number`` until that is gone, then end with them."""
    _load()
    end = socket.socket(fileno=number)
    woken, waker = socket.socketpair()
    for side in (woken, waker):
        side.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    _Host(end, woken, waker).serve()
    os._exit(0)


def _load() -> None:
    """Load all that ranks use, also what is loaded only when it is used, so that they share its memory."""
    import gc

    import flowsched
    import flowsched_torch.serve  # noqa: F401
    from flowsched.backend import Program, pack_object, unpack_object
    from flowsched.programs import check_programs

    graph = flowsched.Graph("one", sources=["x"], nodes=[flowsched.Node("a", inputs=["x"])])
    plan = unpack_object(pack_object(flowsched.compile(graph, 1)))
    check_programs(plan.programs(), plan)
    _ = Program(plan).links
    gc.collect()
    gc.freeze()  # a collection in a rank would otherwise copy the memory that it shares


class _Host:
    def __init__(self, end: socket.socket, woken: socket.socket, waker: socket.socket) -> None:
        self._end, self._woken, self._waker = end, woken, waker
        self._connection = Connection(end)
        self._children: set[int] = set()

    def serve(self) -> None:
        """Serve until the other end is gone; the ranks die with this process."""
        import selectors

        with selectors.DefaultSelector() as selector:
            selector.register(self._end, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while self._connection.is_open:
                selector.select()
                with suppress(BlockingIOError):
                    self._woken.recv(4096)
                for frame in self._connection.drain():
                    if frame.kind is Kind.FORK:
                        self._fork_ranks(frame.number, frame.payload)
                    elif frame.kind is Kind.KILL and frame.number in self._children:
                        os.kill(frame.number, signal.SIGKILL)
                self._reap()
        for child in self._children:
            with suppress(OSError):
                os.kill(child, signal.SIGKILL)

    def _fork_ranks(self, count: int, payload: bytes) -> None:
        """Fork ranks; each takes the next files that the other end sends, once it is told to."""
        self._connection.send(Kind.READY)
        pids: list[int] = []
        for rank in range(count):
            _, files, _, _ = socket.recv_fds(self._end, 1, _ENDS)
            sys.stdout.flush()
            sys.stderr.flush()
            try:
                pid = os.fork()
            except OSError as error:
                pids.append(-(error.errno or 1))
                continue
            if pid == 0:
                self._become(rank, payload, files)
            self._children.add(pid)
            pids.append(pid)
            for file in files:
                os.close(file)
        self._connection.send(Kind.FORKED, 0, json.dumps(pids).encode())

    def _become(self, rank: int, payload: bytes, files: list[int]) -> NoReturn:
        from flowsched_torch.serve import serve

        parent = os.getppid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for side in (self._end, self._woken, self._waker):
            os.close(side.detach())
        serve(rank, payload, files, parent)

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                self._children.discard(ended[0])
                self._connection.send(Kind.EXITED, ended[0], str(ended[1]).encode())
