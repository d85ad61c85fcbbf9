"""One step under way: calls are submitted, their signals awaited, and what is no longer needed let go."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import ray

from flowsched.backend import Step
from flowsched.batch import Batch
from flowsched_ray.actor import Signal
from flowsched_ray.edge import count_bytes, decode, encode_rows
from flowsched_ray.submission import Slice, Submission

_INLINE = (
    65_536  # bytes up to which Ray sends an argument along with a call; above, it is put once for all readers
)


class Flight:
    """Submits the calls of one step and collects what comes back.

    Attributes:
        signals: refs of the signals of the calls that were submitted, by their number.
        sizes: by node, the most bytes that a row of its output took.
    """

    def __init__(self, step: Step, submission: Submission, head: bytes) -> None:
        self.step = step
        self.submission = submission
        self.signals: dict[int, Any] = {}
        self.sizes: dict[int, float] = {}
        self._head = head
        self._slots: list[Any] = [None] * submission.slots
        self._outputs: list[Batch] = [None] * len(submission.entries)
        self._cancelling = threading.Lock()
        self._cancelled = False

    def run(self) -> Sequence[Batch]:
        """Run all calls and return what belongs to the graph's outputs, by number of the call.

        Raises:
            RayError: the first failure, as soon as it is known.
            OutputError: calls of one node, in different replicas, made different columns.
        """
        self._submit_all()
        for call, signal in zip(self.signals, ray.get(list(self.signals.values())), strict=True):
            self.take(call, signal)
        self._slots = []
        return self._outputs

    def take(self, call: int, signal: Signal) -> None:
        """Take note of a call that has ended."""
        program = self.step.program
        links = program.links[call]
        if signal.seen is not None:
            self.step.meet({self.step.plan.graph.nodes[links.node].name: signal.seen})
        self.sizes[links.node] = max(self.sizes.get(links.node, 0.0), signal.size / max(1, links.made))
        if links.is_output:
            self._outputs[call] = decode(signal.batch)

    def cancel(self) -> list[Any]:
        """Cancel what has not ended and return the refs of the calls that may still be running."""
        with self._cancelling:
            refs = list(self.signals.values())
            if not refs or self._cancelled:
                return []
            self._cancelled = True
        _, running = ray.wait(refs, num_returns=len(refs), timeout=0, fetch_local=False)
        for ref in running:
            ray.cancel(ref)
        return list(running)

    def _submit_all(self) -> None:
        slots, head, signals = self._slots, self._head, self.signals
        for entry in self.submission.entries:
            for piece in entry.slices:
                slots[piece.slot] = self._cut(piece)
            made = entry.submit(head + entry.tail, *[slots[slot] for slot in entry.reads])
            if entry.objects == 1:
                slots[entry.signal] = signals[entry.call] = made
            else:
                slots[entry.signal : entry.signal + entry.objects] = made
                signals[entry.call] = made[0]
            for slot in entry.done_with:
                slots[slot] = None

    def _cut(self, piece: Slice) -> Any:
        rows = encode_rows(self.step.inputs[piece.source], piece.start, piece.stop)
        return rows if count_bytes(self.step.inputs[piece.source]) <= _INLINE else ray.put(rows)
