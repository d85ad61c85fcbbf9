"""What holds calls back beside their inputs: nodes they come after, and bounds on what is alive at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from flowsched.runtime.program import Program


class Gates:
    """Opens calls when the nodes that they come ``after`` have ended, and when they enter their node's window.

    The window of a node begins at the first of its calls that is still needed. That bounds the outputs that are
    alive, and cannot wait for itself: a window is never smaller than what running all calls one by one in the
    plan's sequence would keep (:attr:`Program.spans`).

    Attributes:
        any: whether there is any gate; if not, nothing needs to be told to this object.
    """

    def __init__(self, program: Program, window: Sequence[int]) -> None:
        numbers = program.numbers
        self._window = window
        self._stop = {i: own.stop for i, own in enumerate(numbers) if len(own) > window[i]}
        self._oldest = {i: numbers[i].start for i in self._stop}
        self._released = bytearray(program.plan.table.calls if self._stop else 0)
        self._awaited = program.awaited
        self._left = {i: len(numbers[i]) for i in self._awaited}
        self.any = bool(self._stop or self._awaited)

    def shut(self) -> Iterator[int]:
        """Yield the calls that are outside their window at the start."""
        for index, stop in self._stop.items():
            yield from range(self._oldest[index] + self._window[index], stop)

    def end_call(self, node: int) -> Iterable[int]:
        """Note that one more call of a node has ended; return the calls that come after it, if it was the last."""
        if node not in self._left:
            return ()
        self._left[node] -= 1
        if self._left[node]:
            return ()
        return (waiting for numbers in self._awaited[node] for waiting in numbers)

    def release(self, call: int, node: int) -> Iterable[int]:
        """Note that the output of a call of a node is no longer needed; return the calls that enter the window."""
        if node not in self._stop:
            return ()
        self._released[call] = 1
        oldest, stop, size = self._oldest[node], self._stop[node], self._window[node]
        after = oldest
        while after < stop and self._released[after]:
            after += 1
        self._oldest[node] = after
        return range(min(oldest + size, stop), min(after + size, stop))
