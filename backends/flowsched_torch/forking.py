"""The process that ranks are forked from, as the program that uses it sees it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import flowsched
from flowsched.errors import BackendError, CapacityError
from flowsched_torch.control import Connection, Kind

_PATIENCE = 5.0  # seconds for the process to end by itself
_START = """
import json, sys
sys.path[:] = json.loads(sys.argv[2])
from flowsched_torch.host import main
main(int(sys.argv[1]))
"""


class Forking:
    """Starts a process with torch loaded, and has it fork ranks; it ends when nobody refers to it any more."""

    def __init__(self) -> None:
        own, other = socket.socketpair()
        with other:
            self._process = subprocess.Popen(
                # -P: no module of the working directory stands in for one of Python's own
                [sys.executable, "-P", "-c", _START, str(other.fileno()), json.dumps(_module_path())],
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is the program's own to handle
            )
        self._end = own
        self._connection = Connection(own)
        self._exits: dict[int, int] = {}
        self._lock = threading.Lock()
        self._ended = weakref.finalize(self, _end, self._connection, self._process)

    @property
    def is_alive(self) -> bool:
        """Whether ranks can be forked."""
        return self._ended.alive and self._connection.is_open and self._process.poll() is None

    def fork(self, payload: bytes, files: Sequence[Sequence[int]]) -> list[int]:
        """Fork one rank for each group of files, which it is given; return their process numbers.

        Raises:
            BackendError: the process to fork from has ended.
            CapacityError: the machine refuses another process.
        """
        with self._lock:
            try:
                self._connection.send(Kind.FORK, len(files), payload)
                self._expect(Kind.READY)
                for own in files:
                    socket.send_fds(self._end, [b"x"], own)
                pids: list[int] = json.loads(self._expect(Kind.FORKED))
            except BaseException:
                self.end()  # what was asked of it, and what it has answered, is not known any more
                raise
        refused = [-pid for pid in pids if pid < 0]
        if refused:
            self.kill([pid for pid in pids if pid > 0])
            raise CapacityError(
                f"the plan asks for {len(files)} ranks, each a process, and the machine refused "
                f"{len(refused)} of them ({os.strerror(refused[0])}). Give fewer ranks, or raise the limits on "
                "processes"
            )
        return pids

    def status_of(self, pid: int) -> int | None:
        """Return the status with which a rank has ended, as :func:`os.waitpid` tells it; None while it has not."""
        with self._lock:
            for frame in self._connection.drain():
                if frame.kind is Kind.EXITED:
                    self._exits[frame.number] = int(frame.payload)
        return self._exits.get(pid)

    def wait_for(self, pids: Sequence[int], seconds: float) -> list[int]:
        """Wait until ranks have ended, and return those that have not in time."""
        until = time.monotonic() + seconds
        pause = 0.0005
        while True:
            left = [pid for pid in pids if self.status_of(pid) is None]
            if not left or not self._connection.is_open:
                return []
            if time.monotonic() >= until:
                return left
            time.sleep(pause)
            pause = min(2 * pause, 0.02)

    def kill(self, pids: Sequence[int]) -> None:
        """End ranks at once, and wait until they have."""
        for pid in pids:
            self._connection.send(Kind.KILL, pid)
        self.wait_for(pids, _PATIENCE)

    def forget(self, pids: Sequence[int]) -> None:
        """Let go of what is known of ranks that have ended."""
        for pid in pids:
            self._exits.pop(pid, None)

    def end(self) -> None:
        """End the process and all ranks."""
        self._ended()

    def _expect(self, kind: Kind) -> bytes:
        while (frame := self._connection.receive()) is not None:
            if frame.kind is kind:
                return frame.payload
            if frame.kind is Kind.EXITED:
                self._exits[frame.number] = int(frame.payload)
        raise BackendError(
            f"the process that ranks are forked from has ended{_say_end(self._process)}. What it wrote to the "
            f"error output says why; `{sys.executable} -c 'import torch'` may show it, too"
        )


def say_status(status: int) -> str:
    """Return in words how a process has ended.

    >>> say_status(9), say_status(3 << 8)
    ('was killed by signal 9 (SIGKILL)', 'ended with status 3')
    """
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = next((known.name for known in signal.Signals if known == number), "unknown")
        return f"was killed by signal {number} ({name})"
    return f"ended with status {os.WEXITSTATUS(status)}"


def _module_path() -> list[str]:
    """Return where flowsched and its backends are found, and all else that this program can import."""
    here = [str(Path(__file__).parents[1]), str(Path(flowsched.__file__).parents[1])]
    return [*sys.path, *(folder for folder in here if folder not in sys.path)]


def _say_end(process: subprocess.Popen[bytes]) -> str:
    with suppress(subprocess.TimeoutExpired):
        status = process.wait(_PATIENCE)
        return f" with status {status}" if status >= 0 else f" by signal {-status}"
    return ""


def _end(connection: Connection, process: subprocess.Popen[bytes]) -> None:
    connection.close()
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
