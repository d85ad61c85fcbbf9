"""One step under way: calls are submitted, their signals awaited, and what is no longer needed let go."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import ray

from flowsched.backend import Step
from flowsched.batch import Batch, share
from flowsched_ray.actor import BRIEF, Signal, pack_fragment, unpack_fragment
from flowsched_ray.arriving import arrive_home
from flowsched_ray.edge import count_bytes, decode, encode
from flowsched_ray.submission import Slice, Submission
from flowsched_ray.told import Told

_INLINE = (
    65_536  # bytes up to which Ray sends an argument along with a call; above, it is put once for all readers
)


class Flight:
    """Submits the calls of one step and collects what comes back.

    Args:
        step: the step.
        submission: its plan as it is submitted.
        head: how the heads of its calls begin; None where the step follows another of the same submission, whose
            calls the actors know.
        told: what replicas told of what they make; it outlives the step.

    Attributes:
        signals: refs of the signals of the calls that were submitted, by their number.
        sizes: by node, the most bytes that a row of its output took.
    """

    def __init__(self, step: Step, submission: Submission, head: bytes | None, told: Told) -> None:
        self.step = step
        self.submission = submission
        self.signals: dict[int, Any] = {}
        self.sizes: dict[int, float] = {}
        self._head = head
        self._told = told
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
        return self._finish()

    def take(self, call: int, signal: Signal) -> float:
        """Take note of a call that has ended and return the seconds in its worker."""
        seconds: float
        size: int
        links = self.step.program.links[call]
        if isinstance(signal, bytes):
            seconds, size = BRIEF.unpack_from(signal)
        else:
            seconds, size, seen, _ = signal
            if seen is not None:
                self._told.take(links.node, links.replica, seen)
        if links.is_output:
            self._outputs[call] = arrive_home(self.step, links, unpack_fragment(signal), decode)
        if size >= self.sizes.get(links.node, 0.0) * links.made:
            self.sizes[links.node] = size / links.made
        return seconds

    def cancel(self) -> list[Any]:
        """Cancel what has not ended and return the refs of the calls that may still be running."""
        with self._cancelling:
            refs = list(self.signals.values())
            if not refs or self._cancelled:
                return []
            self._cancelled = True
        _, running = ray.wait(refs, num_returns=len(refs), timeout=0, fetch_local=False)
        for ref in reversed(running):  # or an actor would begin the next call between two of these
            ray.cancel(ref)
        return list(running)

    def _finish(self) -> Sequence[Batch]:
        """Let go of everything but the outputs, once what all replicas made has been compared."""
        self._slots = []
        self._told.compare(self.step, self.submission.first_calls)
        return self._outputs

    def _submit_all(self) -> None:
        slots, head, signals = self._slots, self._head, self.signals
        for entry in self.submission.entries:
            for piece in entry.slices:
                slots[piece.slot] = self._cut(piece)
            reads = [slots[slot] for slot in entry.reads]
            if head is None and entry.submit_next is not None:
                made = entry.submit_next(*reads)
            else:
                made = entry.submit((head or b"") + entry.tail, *reads)
            if entry.objects == 1:
                slots[entry.signal] = signals[entry.call] = made
            else:
                slots[entry.signal : entry.signal + entry.objects] = made
                signals[entry.call] = made[0]
            for slot in entry.done_with:
                slots[slot] = None

    def _cut(self, piece: Slice) -> Any:
        rows = share(self.step.inputs[piece.source], piece.start, piece.stop)
        return pack_fragment(encode(rows)) if count_bytes(rows) <= _INLINE else ray.put(encode(rows))
