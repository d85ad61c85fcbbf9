"""The state of one step: which calls have ended, which can start, which outputs are still needed."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from queue import SimpleQueue
from typing import Any

from flowsched.backend import Countdown, Links, Step
from flowsched.batch import Batch


class StepProgress:
    """Hands each call to its replica once it waits for nothing more; everything is counted under one lock.

    Attributes:
        step: the step.
        outputs: by number, the output of every call that has ended and is still needed; from the end, as sources
            are numbered, the step's inputs.
        cancelled: whether the step has failed, was interrupted or is over.
    """

    def __init__(self, step: Step, queues: Mapping[str, Sequence[SimpleQueue[Any]]]) -> None:
        self.step = step
        self._links = step.program.links
        self.outputs: list[Batch] = [*[None] * step.plan.table.calls, *reversed(step.inputs)]
        self._queues = queues
        self._countdown = Countdown(step.program, step.window)
        self._lock = threading.Lock()
        self._ended: SimpleQueue[BaseException | None] = SimpleQueue()
        self.cancelled = False

    def begin(self) -> None:
        """Hand out the calls that wait for nothing."""
        if not self._countdown.left:
            self._ended.put(None)
        for call in self._countdown.first():
            self._hand_out(call)

    def wait(self) -> Sequence[Batch]:
        """Wait until the last call has ended and return the outputs by number of the call.

        Raises:
            BaseException: the first failure.
        """
        error = self._ended.get()
        if error is not None:
            try:
                raise error
            finally:
                del error  # or its traceback and this frame would keep each other alive
        return self.outputs

    def end_call(self, links: Links, output: Batch) -> Links | None:
        """Note that a call has ended; return the next one in its replica's queue if that can start now."""
        following = None
        with self._lock:
            if self.cancelled:
                return None
            self.outputs[links.call] = output
            ready, released = self._countdown.end(links)
            for call in released:
                self.outputs[call] = None
            for call in ready:
                if call == links.successor:
                    following = self._links[call]
                else:
                    self._hand_out(call)
            if not self._countdown.left:
                self._ended.put(None)
        return following

    def fail(self, error: BaseException) -> None:
        """End the step with ``error``, unless it has ended before."""
        with self._lock:
            if not self.cancelled:
                self.cancelled = True
                self._ended.put(error)

    def cancel(self) -> None:
        """Start no further call."""
        with self._lock:
            self.cancelled = True
            self.outputs = []

    def is_cancelled(self) -> bool:
        """Return :attr:`cancelled`, for workers that ask."""
        return self.cancelled

    def _hand_out(self, call: int) -> None:
        links = self._links[call]
        self._queues[links.owner][links.replica].put((self, links))
