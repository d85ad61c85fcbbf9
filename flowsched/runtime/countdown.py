"""Which calls of a step can start, told as others end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flowsched.runtime.gates import Gates
from flowsched.runtime.program import Links, Program


class Countdown:
    """Counts down what each call waits for, for a backend that is told of the end of each call.

    A call waits for the calls it reads from, the call before it in its replica's queue, all calls of the nodes
    it comes after, and for its place in its node's window. It is for one thread at a time.

    Args:
        program: the plan made ready to run.
        window: see :class:`flowsched.backend.Step`.

    Attributes:
        left: how many calls have not ended.
    """

    def __init__(self, program: Program, window: Sequence[int]) -> None:
        self._program = program
        self._links = program.links
        self._waits: list[int] = program.waits.tolist()
        self._readers: list[int] = program.readers.tolist()
        self._gates = Gates(program, window)
        self._any_gates = self._gates.any
        self.left = program.plan.table.calls
        for call in self._gates.shut():
            self._waits[call] += 1

    def first(self) -> list[int]:
        """Return the numbers of the calls that wait for nothing."""
        return [call for call in self._program.first_calls if not self._waits[call]]

    def end(self, links: Links) -> tuple[list[int], list[int]]:
        """Note that a call has ended.

        Returns:
            The numbers of the calls that can start now, and of those whose output is no longer needed: all that
            read it have ended, and it is no output of the graph.
        """
        self.left -= 1
        readers, waits = self._readers, self._waits
        ready: list[int] = []
        unread: list[int] = []
        for producer in links.producers:
            left = readers[producer] = readers[producer] - 1
            if not left:
                unread.append(producer)
        if not links.readers:
            unread.append(links.call)
        freed = links.followers if not self._any_gates else (*links.followers, *self._opened(links, unread))
        for waiting in freed:
            left = waits[waiting] = waits[waiting] - 1
            if not left:
                ready.append(waiting)
        return ready, [call for call in unread if not self._links[call].is_output] if unread else unread

    def _opened(self, links: Links, unread: Sequence[int]) -> Iterable[int]:
        """Yield the calls that a gate no longer holds back."""
        yield from self._gates.end_call(links.node)
        for call in unread:
            yield from self._gates.release(call, self._links[call].node)
