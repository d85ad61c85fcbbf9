"""Telling an observer: in a thread of its own, so that a failure does not wait for one that is busy."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

from flowsched.backend import Step
from flowsched.events import CallEnded, Event, Observer


class Teller:
    """Tells an observer of events, one after the other, in a thread that lives until they are all told.

    Args:
        observer: who is told; None for nobody.
        wake: is called when the observer has raised, for the main thread to look at :attr:`error`.

    Attributes:
        error: what the observer has raised.
    """

    def __init__(self, observer: Observer | None, wake: Callable[[], None]) -> None:
        self._observer, self._wake = observer, wake
        self._events: SimpleQueue[Event | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self.error: BaseException | None = None

    def tell(self, event: Event) -> None:
        """Have the observer told of an event."""
        if self._observer is None:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="observer", daemon=True)
            self._thread.start()
        self._events.put(event)

    def end(self) -> None:
        """Tell nothing more than what came before."""
        if self._thread is not None:
            self._events.put(None)

    def is_busy(self, seconds: float) -> bool:
        """Whether the observer is still being told of something after ``seconds``."""
        if self._thread is None:
            return False
        self._thread.join(seconds)
        return self._thread.is_alive()

    def raise_if_any(self) -> None:
        """Raise what the observer has raised."""
        if self.error is not None:
            raise self.error

    def _serve(self) -> None:
        observer = self._observer
        while observer is not None and (event := self._events.get()) is not None:
            try:
                observer(event)
            except BaseException as error:  # noqa: BLE001 - the main thread raises it
                self.error = error
                self._wake()
                return


class InOrder:
    """Tells of calls that ranks say have ended: none before those that it reads.

    What two ranks say arrives on two connections, so that a reader's end may be heard before its producer's.

    Args:
        step: the step.
        tell: is told of each call.
    """

    def __init__(self, step: Step, tell: Callable[[CallEnded], None]) -> None:
        self._step, self._tell = step, tell
        self._lock = threading.Lock()
        self._told: set[int] = set()
        self._early: dict[int, CallEnded] = {}
        self._waiting: dict[int, list[int]] = {}
        table, nodes = step.plan.table, step.plan.graph.nodes
        places = zip(table.node.tolist(), table.replica.tolist(), table.position.tolist(), strict=True)
        self._numbers = {
            (nodes[node].name, replica, position): call
            for call, (node, replica, position) in enumerate(places)
        }

    def hear(self, event: CallEnded) -> None:
        """Tell of a call, and of those that waited for it, or keep it until what it reads has been told."""
        with self._lock:
            self._hear(self._numbers[event.node, event.replica, event.position], event)

    def _hear(self, call: int, event: CallEnded) -> None:
        self._early[call] = event
        ready = [call]
        while ready:
            call = ready.pop()
            made = self._step.program.links[call].producers
            missing = next((producer for producer in made if producer not in self._told), None)
            if missing is not None:
                self._waiting.setdefault(missing, []).append(call)
                continue
            self._tell(self._early.pop(call))
            self._told.add(call)
            ready += self._waiting.pop(call, [])
