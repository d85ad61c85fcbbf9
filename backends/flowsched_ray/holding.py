"""Submitting the calls of a step little by little: within windows, after other nodes, and within bytes."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import ray

from flowsched.backend import Gates, Links, Step
from flowsched.batch import Batch
from flowsched_ray.actor import Signal
from flowsched_ray.flight import Flight
from flowsched_ray.submission import Entry, Submission
from flowsched_ray.told import Told

_LOOKS = 0.1  # seconds after which somebody who waits for signals looks up


class HeldFlight(Flight):
    """Submits a call once its producers and the call before it in its replica's queue are submitted, the nodes that
    it comes after have ended, it is inside its node's window, and there is room for what it will make.

    What is submitted can always run to its end, since all that it waits for was submitted before it. If nothing
    is under way, the next call is submitted whatever room there is.

    Args:
        row_bytes: by node, about how many bytes a row of its output takes, as far as that is known. Of a node of
            which it is not, no more calls are under way than it has replicas.
        room: bytes that outputs which are still read may take.
        look_up: is called again and again while nothing happens; what it raises ends the step.
        tell: is called with each call that has ended, and the seconds in its worker.
    """

    def __init__(
        self,
        step: Step,
        submission: Submission,
        head: bytes,
        told: Told,
        *,
        row_bytes: Mapping[int, float],
        room: float,
        look_up: Callable[[], None],
        tell: Callable[[int, float], None],
    ) -> None:
        super().__init__(step, submission, head, told)
        self._begin = head
        self._program = program = step.program
        self._gates = Gates(program, step.window)
        self._waits: list[int] = program.waits.tolist()
        for call in self._gates.shut():
            self._waits[call] += 1
        self._readers: list[int] = program.readers.tolist()
        self._unread = list(submission.readers)
        self._entries = {entry.call: (place, entry) for place, entry in enumerate(submission.entries)}
        self._ready: list[tuple[int, Entry]] = []
        self._under_way: dict[Any, Entry] = {}
        self._row_bytes, self._room, self._look_up, self._tell = dict(row_bytes), room, look_up, tell
        graph = step.plan.graph
        self._replicas = [graph.owner(node.name).replicas for node in graph]
        self._running = [0] * len(self._replicas)
        self._ended: dict[int, dict[int, int]] = {}
        self._alive: dict[int, float] = {}
        self._bytes = 0.0

    def run(self) -> Sequence[Batch]:
        """Run all calls; see :meth:`Flight.run`."""
        for call in self._program.first_calls:
            if not self._waits[call]:
                heapq.heappush(self._ready, self._entries[call])
        while self._ready or self._under_way:
            self._submit_what_fits()
            self._look_up()
            for entry, signal in self._wait():
                self._end(entry, signal)
        return self._finish()

    def _submit_what_fits(self) -> None:
        while self._ready:
            entry = self._ready[0][1]
            each = self._row_bytes.get(entry.node)
            size = entry.made * (each or 0.0)
            unknown = each is None and self._running[entry.node] >= self._replicas[entry.node]
            if self._under_way and (unknown or self._bytes + size > self._room):
                return
            heapq.heappop(self._ready)
            self._account(entry.call, size)
            self._running[entry.node] += 1
            self._submit(entry)

    def _submit(self, entry: Entry) -> None:
        slots = self._slots
        for slot in entry.reads:
            if slots[slot] is None:
                slots[slot] = self._cut(self.submission.sources[slot])
        made = entry.submit(self._begin + entry.tail, *[slots[slot] for slot in entry.reads])
        own = made if entry.objects > 1 else [made]
        slots[entry.signal : entry.signal + entry.objects] = own
        self.signals[entry.call] = own[0]
        self._under_way[own[0]] = entry
        for slot in entry.reads:
            self._unread[slot] -= 1
            if not self._unread[slot]:
                slots[slot] = None
        if not self._unread[entry.signal]:
            slots[entry.signal] = None
        self._open(self._program.links[entry.call].followers)

    def _wait(self) -> list[tuple[Entry, Signal]]:
        refs = list(self._under_way)
        ready, _ = ray.wait(refs, num_returns=1, timeout=_LOOKS)
        if not ready:
            return []
        if len(refs) > 1:
            ready, _ = ray.wait(refs, num_returns=len(refs), timeout=0)
        return [(self._under_way.pop(ref), signal) for ref, signal in zip(ready, ray.get(ready), strict=True)]

    def _end(self, entry: Entry, signal: Signal) -> None:
        links = self._program.links[entry.call]
        del self.signals[entry.call]
        self._tell(entry.call, self.take(entry.call, signal))
        self._compare_early(links, signal)
        self._running[entry.node] -= 1
        self._row_bytes[entry.node] = size = self.sizes.get(entry.node, 0.0)
        self._account(entry.call, size * entry.made)
        released = [] if self._readers[entry.call] else [entry.call]
        for producer in links.producers:
            self._readers[producer] -= 1
            if not self._readers[producer]:
                released.append(producer)
        self._open(self._gates.end_call(links.node))
        for call in released:
            self._bytes -= self._alive.pop(call, 0.0)
            self._open(self._gates.release(call, self._program.links[call].node))

    def _compare_early(self, links: Links, signal: Signal) -> None:
        """Compare what a replica made, first in this step or new, with what others made in this step."""
        ended = self._ended.setdefault(links.node, {})
        if links.replica not in ended or (isinstance(signal, tuple) and signal[2] is not None):
            ended[links.replica] = self.submission.first_calls[links.node][links.replica]
            self._told.compare_node(self.step, links.node, ended)

    def _account(self, call: int, size: float) -> None:
        self._bytes += size - self._alive.get(call, 0.0)
        self._alive[call] = size

    def _open(self, calls: Iterable[int]) -> None:
        for call in calls:
            self._waits[call] -= 1
            if not self._waits[call]:
                heapq.heappush(self._ready, self._entries[call])
