"""A thread on every rank that hears of failures while the main thread runs calls or waits for data."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeAlias

from flowsched.backend import pack_error, unpack_error
from flowsched.errors import SessionError
from flowsched_torch.control import Connection, Frame, Kind
from flowsched_torch.hub import GoneError, Hub, SilentError

_WORD_OF_A_CAUSE = 2.0  # seconds in which the cause of a lost connection is told

Heard: TypeAlias = tuple[int, Frame] | None
"""A rank and what it said; None: look at ``failure``."""


class Watch(ABC):
    """What this rank knows of the session's end.

    Args:
        on_failure: is called, once, when the session fails or ends.

    Attributes:
        failure: why the session is over; None while it is not.
        closing: what a step would raise now that rank 0 has closed the session, as it may when all have ended.
    """

    def __init__(self, on_failure: Callable[[], None]) -> None:
        self.failure: BaseException | None = None
        self.closing: BaseException | None = None
        self._on_failure = on_failure
        self._lock = threading.Lock()

    @abstractmethod
    def find_cause(self, error: BaseException) -> BaseException | None:
        """Return why a connection of this rank was lost, once that is known.

        Args:
            error: what the mesh raised.
        """

    def is_over(self) -> bool:
        """Whether the session is over."""
        return self.failure is not None

    def fail(self, error: BaseException) -> bool:
        """End the session with ``error``, unless it is over; return whether that was news."""
        with self._lock:
            if self.failure is not None:
                return False
            self.failure = error
        self._on_failure()
        return True


class HomeWatch(Watch):
    """At home: hears all ranks, passes on what they say, and tells all of the first failure of any.

    Args:
        hub: the connections to all others.
        lost: makes the error for a rank that is gone or silent, from the rank and what happened.
        on_failure: likewise.
        listen: is given what ranks say of events.

    Attributes:
        heard: what ranks have said, for the main thread.
    """

    def __init__(
        self,
        hub: Hub,
        lost: Callable[[int, str], BaseException],
        on_failure: Callable[[], None],
        listen: Callable[[Frame], None],
    ) -> None:
        super().__init__(on_failure)
        self._hub, self._lost, self._listen = hub, lost, listen
        self.heard: SimpleQueue[Heard] = SimpleQueue()
        self._left: set[int] = set()
        self._ended = False
        self._thread = threading.Thread(target=self._serve, name="flowsched-home", daemon=True)
        self._thread.start()

    def fail(self, error: BaseException) -> bool:
        """End the session on all ranks."""
        if not super().fail(error):
            return False
        self._hub.alarm(Kind.OVER, 0, pack_error(error))
        self.heard.put(None)
        return True

    def end(self) -> None:
        """End the thread, and whatever waits for it to hear something."""
        self._ended = True
        self._hub.wake()
        self.heard.put(None)
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _serve(self) -> None:
        while not self._ended and not self.is_over():
            try:
                for rank, frame in self._hub.hear():
                    self._take(rank, frame)
            except GoneError as gone:
                if not self._ended:
                    self.fail(self._say_gone(gone.rank))
            except SilentError as silent:
                self.fail(self._lost(silent.rank, "its rank does not answer"))

    def _take(self, rank: int, frame: Frame) -> None:
        if frame.kind is Kind.FAILED:
            self.fail(unpack_error(frame.payload))
        elif frame.kind is Kind.BROKEN:
            self.fail(self._find_cause(unpack_error(frame.payload)))
        elif frame.kind is Kind.OVER:
            self._left.add(rank)
        elif frame.kind in (Kind.EVENT, Kind.BUILT):
            self._listen(frame)
        else:
            self.heard.put((rank, frame))

    def find_cause(self, error: BaseException) -> BaseException | None:
        """Return why a connection of this rank was lost, once the thread has heard of it."""
        self._thread.join(_WORD_OF_A_CAUSE)
        self.fail(SessionError(f"the connection between two ranks was lost: {error}"))
        return self.failure

    def _find_cause(self, error: BaseException) -> BaseException:
        """Return why another rank has lost a connection: a failure or a death that is heard of now."""
        for _, frame in self._hub.settle(_WORD_OF_A_CAUSE):
            if frame.kind is Kind.FAILED:
                return unpack_error(frame.payload)
            if self._hub.gone:
                break
        if self._hub.gone:
            return self._say_gone(self._hub.gone[0])
        return SessionError(f"the connection between two ranks was lost: {error}")

    def _say_gone(self, rank: int) -> BaseException:
        if rank in self._left:
            return SessionError(
                f"rank {rank} has closed the session. Close it on all ranks after the same step"
            )
        return self._lost(rank, "its process has ended, or the network to it was cut")


class RankWatch(Watch):
    """Elsewhere: hears what home says about the session's end.

    Args:
        alarms: the connection that is only for that.
        lost: makes the error for home's loss.
        on_failure: likewise.
    """

    def __init__(
        self, alarms: Connection, lost: Callable[[int, str], BaseException], on_failure: Callable[[], None]
    ) -> None:
        super().__init__(on_failure)
        self._alarms, self._lost = alarms, lost
        self._ended = False
        self._thread = threading.Thread(target=self._serve, name="flowsched-rank", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Wait until home has said that the session is over."""
        self._thread.join(seconds)

    def end(self) -> None:
        """End the thread."""
        self._ended = True
        self._alarms.close()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def find_cause(self, error: BaseException) -> BaseException | None:
        """Return why a connection of this rank was lost, once home has told."""
        self.wait(2 * _WORD_OF_A_CAUSE)
        self.fail(self.closing or SessionError(f"the connection between two ranks was lost: {error}"))
        return self.failure

    def _serve(self) -> None:
        while (frame := self._alarms.receive()) is not None:
            if frame.kind is Kind.PING:
                self._alarms.send(Kind.PONG)
            elif frame.kind is Kind.OVER:
                if frame.payload:
                    self.fail(unpack_error(frame.payload))
                else:
                    self.closing = _closed()
                return
        if not self._ended:
            self.fail(self._lost(0, "its process has ended, or the network to it was cut"))


def _closed() -> SessionError:
    return SessionError("rank 0 has closed the session. Close it on all ranks after the same step")
