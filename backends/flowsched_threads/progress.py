"""The state of one step: which calls have ended, which can start, which outputs are still needed."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from queue import SimpleQueue
from typing import Any

from flowsched.backend import Gates, Links, Step
from flowsched.batch import Batch


class StepProgress:
    """Counts down what each call waits for and hands it to its replica at zero.

    A call waits for the calls it reads from, the call before it in its replica's queue, all calls of the nodes
    it comes after, and for its place in its node's window. Everything is counted under one lock.

    Attributes:
        step: the step.
        outputs: by number, the output of every call that has ended and is still needed; from the end, as sources
            are numbered, the step's inputs.
        cancelled: whether the step has failed, was interrupted or is over.
    """

    def __init__(self, step: Step, queues: Mapping[str, Sequence[SimpleQueue[Any]]]) -> None:
        self.step = step
        self._program = program = step.program
        self._links = program.links
        calls = program.plan.table.calls
        self.outputs: list[Batch] = [*[None] * calls, *reversed(step.inputs)]
        self._queues = queues
        self._waits: list[int] = program.waits.tolist()
        self._readers: list[int] = program.readers.tolist()
        self._left = calls
        self._lock = threading.Lock()
        self._ended: SimpleQueue[BaseException | None] = SimpleQueue()
        self.cancelled = False
        self._gates = Gates(program, step.window)
        for call in self._gates.shut():
            self._waits[call] += 1

    def begin(self) -> None:
        """Hand out the calls that wait for nothing."""
        if not self._left:
            self._ended.put(None)
        for call in [call for call in self._program.first_calls if not self._waits[call]]:
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
            waits = self._waits
            for waiting in self._freed(links):
                left = waits[waiting] = waits[waiting] - 1
                if left:
                    continue
                if waiting == links.successor:
                    following = self._links[waiting]
                else:
                    self._hand_out(waiting)
            self._left -= 1
            if not self._left:
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

    def _freed(self, links: Links) -> Iterable[int]:
        """Return the calls that wait for one thing less now that a call has ended, and let go of what it read."""
        readers, released = self._readers, []
        for producer in links.producers:
            left = readers[producer] = readers[producer] - 1
            if not left:
                released.append(producer)
                if not self._links[producer].is_output:
                    self.outputs[producer] = None
        if not self._gates.any:
            return links.followers
        if not readers[links.call]:
            released.append(links.call)
        return (*links.followers, *self._opened(links, released))

    def _opened(self, links: Links, released: Sequence[int]) -> Iterable[int]:
        """Yield the calls that a gate no longer holds back."""
        yield from self._gates.end_call(links.node)
        for call in released:
            yield from self._gates.release(call, self._links[call].node)

    def _hand_out(self, call: int) -> None:
        links = self._links[call]
        self._queues[links.owner][links.replica].put((self, links))
