"""Telling an observer what happened, without making the step wait for it."""

from __future__ import annotations

import threading
from queue import SimpleQueue

from flowsched.events import Event, Observer


class Telling:
    """A thread of one step that passes events on. Use it in a ``with`` statement.

    Leaving it waits until everything has been told; leaving it with an error does not.

    Attributes:
        error: what the observer raised, or None.
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._queue: SimpleQueue[Event | None] = SimpleQueue()
        self.error: BaseException | None = None
        self._over = False
        self._thread = threading.Thread(target=self._pass_on, name="flowsched-ray-observer", daemon=True)

    def tell(self, event: Event) -> None:
        """Have an event passed on."""
        self._queue.put(event)

    def __enter__(self) -> Telling:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._over = kind is not None
        self._queue.put(None)
        if kind is None:
            self._thread.join()
            self.raise_error()

    def raise_error(self) -> None:
        """Raise what the observer raised, if it did."""
        if self.error is not None:
            raise self.error

    def _pass_on(self) -> None:
        while (event := self._queue.get()) is not None and not self._over:
            try:
                self._observer(event)
            except BaseException as error:  # noqa: BLE001 - the step raises it
                self.error = error
                return
