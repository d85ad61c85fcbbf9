"""How the threads of a backend call one observer."""

from __future__ import annotations

import threading

from flowsched.errors import InputError, Problem, say_exception
from flowsched.events import Event, Observer, StepFailed

_PATIENCE = 0.5  # seconds that a failure waits for an observer that is in the middle of another event


class OneAtATime:
    """An observer that the threads of a backend can call, wrapped around one that need not be prepared for it.

    It passes nothing on once a step has failed: other replicas may still be in the middle of a call then.
    """

    def __init__(self, observer: Observer) -> None:
        given: object = observer
        if not callable(given):
            problem = Problem(
                "wrong-type", "observer", f"{given!r} cannot be called", "Give a function of one event"
            )
            raise InputError("session", [problem])
        self._observer = observer
        self._lock = threading.Lock()
        self._over = False

    def __call__(self, event: Event) -> None:
        with self._lock:
            if not self._over:
                self._observer(event)

    def tell_failure(self, event: StepFailed) -> None:
        """Pass on the last event, unless the observer is busy: the failure does not wait for it.

        What the observer itself raises at the event is noted on the failure.
        """
        self._over = True
        if not self._lock.acquire(timeout=_PATIENCE):
            return
        try:
            self._observer(event)
        except BaseException as second:  # noqa: BLE001 - a later error must not hide the first one
            said = f"The observer then failed on {type(event).__name__}: {say_exception(second)}"
            event.error.add_note(said)
        finally:
            self._lock.release()

    def mute(self) -> None:
        """Pass nothing on any more."""
        self._over = True
