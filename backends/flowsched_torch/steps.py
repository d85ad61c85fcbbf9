"""One rank's part of a step: receive, run, send, in the order of its program."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
import torch

from flowsched.backend import Seen, Step
from flowsched.batch import Batch, share, take
from flowsched.events import CallEnded
from flowsched_torch.incoming import Incoming
from flowsched_torch.messages import UnsendableError, VoidError
from flowsched_torch.outgoing import Outgoing
from flowsched_torch.schedule import CallPlan, Here, Move, RankPlan, Source, There
from flowsched_torch.unsendable import unreadable, unsendable_input, unsendable_output

Workers: TypeAlias = Mapping[tuple[int, int], tuple[Callable[..., Any], str | None]]
"""What is called for each node (its index) and replica of this rank, and the replica's device."""


_HOME = "its output cannot be brought home"
_HERE = "what it reads cannot be brought to its process"
_ELSEWHERE = "its output cannot be brought to the other ranks"


class CancelledError(Exception):
    """The step is over for a reason that somebody else has told."""


class RankStep:
    """One rank's part of one step of a plan, or of several, one after the other.

    Args:
        own: what the rank does.
        workers: the rank's replicas.
        cancelled: tells whether the step is over.
        note: is called with the number of each call before its worker is, and with -1 when that has returned.
        see: is called after each call that has seen what was not told, before anybody else has its output.
        told: what was told of outputs.
        tell: is told of each call that has ended; None if nobody listens.
        look: is called with the receiver and the call whose output it has not posted all memory for.
    """

    def __init__(
        self,
        own: RankPlan,
        workers: Workers,
        cancelled: Callable[[], bool],
        note: Callable[[int], None],
        see: Callable[[Step], None],
        told: Mapping[str, Seen],
        tell: Callable[[CallEnded], None] | None = None,
        look: Callable[[int, int], None] | None = None,
    ) -> None:
        self.own, self._workers = own, workers
        self._cancelled, self._note, self._see, self._tell, self._look = cancelled, note, see, tell, look
        self._told = told
        self.outputs: dict[int, Batch] = {}
        self._step: Step

    def begin(self, step: Step) -> None:
        """Send what is read of the step's inputs, where this rank holds them, and post the first receives.

        Raises:
            InputError: one cannot be pickled.
        """
        self._step = step
        self.outputs = {}
        for outgoing, source, start, stop in self.own.inputs:  # for which others wait already
            self._send_input(outgoing, source, start, stop)
        for stream in self.own.post:
            stream.post()

    def run_calls(self) -> None:
        """Run the rank's calls.

        Raises:
            VoidError: the step is none; the rank has passed that on.
            RunError: a worker failed, or what it returned cannot be pickled.
            CancelledError: the step is over meanwhile.
            RuntimeError: a connection is lost.
        """
        try:
            if self.own.opening:
                self._move(self.own.opening)
            for own in self.own.calls:
                self._run_call(own)
        except VoidError:
            self._pass_void()
            raise

    def end(self) -> None:
        """Wait until all is sent that would otherwise be kept alive for nothing."""
        for stream in self.own.sends:
            stream.settle()

    def take_outputs(self) -> dict[int, Batch]:
        """Wait for the outputs that come from other ranks; return all by number of the call."""
        for call in self.own.outputs:
            self.take_output(call)
        return self.outputs

    def take_output(self, call: int) -> None:
        """Wait for one of the outputs that come from other ranks.

        Raises:
            OutputError: it cannot be read here.
        """
        stream = self.own.outputs[call]
        if call in self.outputs:
            return
        try:
            self.outputs[call] = stream.take()
        except UnsendableError as error:
            raise unreadable(self._step, call, error, _HOME) from error.__cause__
        stream.release()

    def spread_outputs(self) -> None:
        """At home: pass the outputs on to all ranks that are to have them.

        Raises:
            OutputError: one cannot be pickled.
        """
        for call, stream in self.own.spreads:
            try:
                stream.send(self.outputs[call])
            except UnsendableError as error:
                raise unsendable_output(self._step, call, error, self.outputs[call]) from error.__cause__

    def take_spread(self) -> dict[int, Batch]:
        """Elsewhere: wait for the outputs that home passes on; return all by number of the call.

        Raises:
            OutputError: one cannot be read here.
        """
        found = {}
        for call, stream in self.own.spread.items():
            try:
                found[call] = stream.take()
            except UnsendableError as error:
                raise unreadable(self._step, call, error, _ELSEWHERE) from error.__cause__
            stream.release()
        return found

    def _send_input(self, outgoing: Outgoing, source: int, start: int, stop: int) -> None:
        rows = _rows(self._step.inputs[source], start, stop, self._step.plan.samples)
        try:
            outgoing.send(rows)
        except UnsendableError as error:
            raise unsendable_input(self._step, source, error, rows) from error.__cause__

    def _send(self, outgoing: Outgoing, output: Batch, start: int, stop: int, own: CallPlan) -> None:
        made = own.links.made
        rows = output if stop - start == made else _rows(output, start, stop, made)
        try:
            outgoing.send(rows)
        except UnsendableError as error:
            raise unsendable_output(self._step, own.links.call, error, rows) from error.__cause__
        if outgoing.overflows and self._look is not None:
            for peer, _ in outgoing.to:
                self._look(peer, own.links.call)

    def _move(self, moves: Sequence[Move], own: CallPlan | None = None, output: Batch = None) -> None:
        """Send and take messages in the one order of all ranks."""
        for stream, source, start, stop in moves:
            if isinstance(stream, Outgoing) and own is not None:
                self._send(stream, output, start, stop, own)
            elif isinstance(stream, Outgoing):
                self._send_input(stream, source, start, stop)
            else:
                with suppress(UnsendableError):  # which its reader is told
                    stream.take()

    def _pass_void(self) -> None:
        """Take and send what a step takes and sends, without its rows; nothing has run then, and nothing will."""
        _move_void(self.own.opening)
        for own in self.own.calls:
            for stream in own.post:
                stream.post()
            for signal in own.waits:
                signal.wait()
            for source in (source for sources in own.sources for source in sources):
                if isinstance(source, There):
                    _take_void(source.stream)
            for signal in own.signals:
                signal.send()
            for outgoing, _, _ in own.sends:
                outgoing.send_void()
            _move_void(own.moves)
        for own in self.own.calls:
            for stream in own.releases:
                stream.release()
        self.end()

    def _run_call(self, own: CallPlan) -> None:
        step, links = self._step, own.links
        for stream in own.post:
            stream.post()
        for signal in own.waits:
            signal.wait()
        for outgoing in own.left:
            if outgoing.is_awaited or not outgoing.overflows:
                outgoing.wait()
        batches = self._gather(own)
        if self._cancelled():
            raise CancelledError
        worker, device = self._workers[links.node, links.replica]
        began = time.perf_counter() if self._tell is not None else 0.0
        self._note(links.call)
        output = step.run(links, worker, batches, device, self._cancelled)
        self._note(-1)
        if not step.seen().items() <= self._told.items():
            self._see(step)
        del batches  # views keep their whole batch alive
        if self._tell is not None:
            seconds = time.perf_counter() - began
            self._tell(CallEnded(step.number, *step.coordinates(links.call), seconds))
        for signal in own.signals:  # first: what is taken among the moves may wait for them
            signal.send()
        for outgoing, start, stop in own.sends:
            self._send(outgoing, output, start, stop, own)
        if own.moves:
            self._move(own.moves, own, output)
        if own.keeps:
            self.outputs[links.call] = output
        for stream in own.releases:
            stream.release()
        for call in own.drops:
            del self.outputs[call]

    def _gather(self, own: CallPlan) -> list[Batch]:
        try:
            if own.sole is not None:
                batches = []
                for source in own.sole:
                    if type(source) is There and not source.is_shared:
                        batches.append(source.stream.take())
                    else:
                        batches.append(self._fragment(source))
                return batches
            parts = [[self._fragment(source) for source in sources] for sources in own.sources]
        except UnsendableError as error:
            raise unreadable(self._step, own.links.call, error, _HERE) from error.__cause__
        return self._step.join(own.links, parts)

    def _fragment(self, source: Source) -> Batch:
        if isinstance(source, Here):
            producer = source.producer
            batch = self.outputs[producer] if producer >= 0 else self._step.inputs[-1 - producer]
            return share(batch, source.start, source.stop)
        if source.is_shared:
            return share(source.stream.take(), 0, source.rows)
        return source.stream.take()


def begin_void(own: RankPlan) -> None:
    """At home: begin a step that is none, for ranks that have begun one beforehand which does not come."""
    for outgoing, _, _, _ in own.inputs:
        outgoing.send_void()
    for stream in own.post:
        stream.post()


def end_void(own: RankPlan) -> None:
    """At home, when the ranks have ended it: take what came in place of the outputs."""
    for stream in own.outputs.values():
        _take_void(stream)
        stream.release()


def _move_void(moves: Sequence[Move]) -> None:
    for stream, _, _, _ in moves:
        if isinstance(stream, Outgoing):
            stream.send_void()
        else:
            _take_void(stream)


def _take_void(stream: Incoming) -> None:
    with suppress(VoidError):
        stream.take()


def _rows(batch: Batch, start: int, stop: int, rows: int) -> Batch:
    """Return some of the rows of a batch of ``rows`` rows, which was looked into before."""
    if stop - start == rows:
        return batch
    if type(batch) is np.ndarray or type(batch) is torch.Tensor:
        return batch[start:stop]
    return take(batch, start, stop)
