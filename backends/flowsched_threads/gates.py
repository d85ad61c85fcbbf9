"""What holds calls back beside their inputs: nodes they come after, and bounds on what is alive at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from flowsched.backend import Program


class AfterGates:
    """Opens the calls of a node when all calls of a node that it comes ``after`` have ended."""

    def __init__(self, program: Program) -> None:
        graph = program.plan.graph
        self._node_of = program.node_of
        self._waiting: dict[int, list[range]] = {}
        for node in graph:
            for name in node.after:
                self._waiting.setdefault(graph.index(name), []).append(program.plan[node.name].numbers)
        self._left = {index: len(program.plan[graph.nodes[index].name]) for index in self._waiting}

    def end_call(self, call: int) -> Iterable[int]:
        """Return the calls that the end of this call opens."""
        if not self._waiting:
            return ()
        index = self._node_of[call]
        if index not in self._left:
            return ()
        self._left[index] -= 1
        if self._left[index]:
            return ()
        return (waiting for numbers in self._waiting[index] for waiting in numbers)


class Windows:
    """Lets the calls of a node start only within a window that begins at the first one still needed.

    That bounds the outputs that are alive, and cannot wait for itself: the window is never smaller than what
    running all calls one by one in the plan's sequence would keep (:attr:`Program.spans`).
    """

    def __init__(self, program: Program, sizes: Sequence[int]) -> None:
        self._node_of = program.node_of
        numbers = [node.numbers for node in program.plan]
        self._stop = {
            index: own.stop
            for index, (own, size) in enumerate(zip(numbers, sizes, strict=True))
            if len(own) > size
        }
        self._size = sizes
        self._oldest = {index: numbers[index].start for index in self._stop}
        self._released = bytearray(program.plan.table.calls) if self._stop else bytearray()

    def gated(self) -> Iterator[int]:
        """Yield the calls that are outside their window at the start."""
        for index, stop in self._stop.items():
            yield from range(self._oldest[index] + self._size[index], stop)

    def release(self, call: int) -> Iterable[int]:
        """Note that the output of ``call`` is no longer needed; return the calls that enter the window."""
        if not self._stop:
            return ()
        index = self._node_of[call]
        if index not in self._stop:
            return ()
        self._released[call] = 1
        oldest, stop, size = self._oldest[index], self._stop[index], self._size[index]
        after = oldest
        while after < stop and self._released[after]:
            after += 1
        self._oldest[index] = after
        return range(min(oldest + size, stop), min(after + size, stop))
