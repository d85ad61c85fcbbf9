"""The state of one step: which calls have ended, which can start, which outputs are still needed."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from queue import SimpleQueue
from typing import Any

from flowsched.backend import Step
from flowsched.batch import Batch
from flowsched_threads.gates import AfterGates, Windows


class StepProgress:
    """Counts down what each call waits for and hands it to its replica at zero.

    A call waits for the calls it reads from, the call before it in its replica's queue, all calls of the nodes
    it comes after, and for its place in its node's window. Everything is counted under one lock.

    Attributes:
        step: the step.
        outputs: by number, the output of every call that has ended and is still needed.
    """

    def __init__(self, step: Step, queues: Mapping[str, Sequence[SimpleQueue[Any]]]) -> None:
        self.step = step
        self._program = program = step.program
        self.outputs: list[Batch] = [None] * program.plan.table.calls
        self._queues = queues
        self._waits: list[int] = program.waits.tolist()
        self._readers: list[int] = program.readers.tolist()
        self._left = len(self.outputs)
        self._lock = threading.Lock()
        self._ended: SimpleQueue[BaseException | None] = SimpleQueue()
        self._cancelled = False
        self._after = AfterGates(program)
        self._windows = Windows(program, step.window)
        for call in self._windows.gated():
            self._waits[call] += 1

    def begin(self) -> None:
        """Hand out the calls that wait for nothing."""
        if not self.outputs:
            self._ended.put(None)
        for call in [call for call, waits in enumerate(self._waits) if not waits]:
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

    def end_call(self, call: int, output: Batch) -> int | None:
        """Note that a call has ended; return the next one in its replica's queue if that can start now."""
        program = self._program
        successor: int = program.successor_of(call)
        following = None
        with self._lock:
            if self._cancelled:
                return None
            self.outputs[call] = output
            for ready in self._count_down(call, successor):
                if ready == successor:
                    following = ready
                else:
                    self._hand_out(ready)
            self._left -= 1
            if not self._left:
                self._ended.put(None)
        return following

    def fail(self, error: BaseException) -> None:
        """End the step with ``error``, unless it has ended before."""
        with self._lock:
            if not self._cancelled:
                self._cancelled = True
                self._ended.put(error)

    def cancel(self) -> None:
        """Start no further call."""
        with self._lock:
            self._cancelled = True
            self.outputs = []

    def is_cancelled(self) -> bool:
        """Whether the step has failed, was interrupted or is over."""
        return self._cancelled

    def _count_down(self, call: int, successor: int) -> list[int]:
        """Return the calls for which the end of ``call`` was the last thing they waited for."""
        program = self._program
        freed = program.readers_of(call)
        if successor >= 0:
            freed.append(successor)
        freed += self._after.end_call(call)
        if not self._readers[call]:
            freed += self._windows.release(call)
        for producer in program.producers_of(call):
            self._readers[producer] -= 1
            if not self._readers[producer]:
                freed += self._release(producer)
        waits = self._waits
        ready = []
        for waiting in freed:
            waits[waiting] -= 1
            if not waits[waiting]:
                ready.append(waiting)
        return ready

    def _release(self, call: int) -> Iterable[int]:
        """Let go of an output that all have read; return the calls whose window that moves."""
        if not self._program.is_output(call):
            self.outputs[call] = None
        return self._windows.release(call)

    def _hand_out(self, call: int) -> None:
        owner, replica = self._program.replica_of(call)
        self._queues[owner][replica].put((self, call))
