"""What one rank does in every step of a plan: its calls in order, each with its messages, found once a plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from flowsched.backend import Links, Program
from flowsched.programs import ActionKind, Message, Programs
from flowsched.programs.traffic import place_calls
from flowsched_torch.credits import find_credits, find_left
from flowsched_torch.direct import Direct
from flowsched_torch.incoming import Incoming
from flowsched_torch.mesh import Mesh
from flowsched_torch.outgoing import Outgoing
from flowsched_torch.signals import Signal

_AHEAD = 4  # calls whose messages may arrive before they are waited for


@dataclass(frozen=True, slots=True)
class Here:
    """A fragment of what this rank holds: rows of the output of its own call, or of an input of the step."""

    producer: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class There:
    """A fragment that comes as a message, and whether several calls here read that."""

    stream: Incoming
    rows: int
    is_shared: bool


Source: TypeAlias = Here | There
Move: TypeAlias = tuple[Outgoing | Incoming, int, int, int]
"""A message that is sent, of rows of an input of the step (its index) or of the last call, or one that is taken."""


@dataclass(slots=True, eq=False)
class CallPlan:
    """One call and what is to be done around it.

    Attributes:
        links: what it has to do with other calls.
        sources: where the fragments of each of its inputs are.
        sole: where the only fragment of each input is, where every input is a slice of what one call made; or None.
        post: receives to post before it is waited for.
        waits: signals that must be there before it starts.
        left: earlier messages of this node that are read everywhere once these signals are there.
        sends: messages of rows of its output.
        signals: signals that it has ended.
        moves: in place of ``sends``, where ranks keep to one order of all messages: those that are sent and taken
            between this call and the next, and of an input that is sent the source.
        keeps: whether its output is needed here afterwards.
        drops: calls of this rank whose output nobody here needs after it.
        releases: messages that nobody here needs after it.
    """

    links: Links
    sources: list[list[Source]]
    sole: list[Source] | None = None
    post: list[Incoming | Signal] = field(default_factory=list)
    waits: list[Signal] = field(default_factory=list)
    left: list[Outgoing] = field(default_factory=list)
    sends: list[tuple[Outgoing, int, int]] = field(default_factory=list)
    signals: list[Signal] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    keeps: bool = False
    drops: list[int] = field(default_factory=list)
    releases: list[Incoming] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class RankPlan:
    """What one rank does in a step.

    Attributes:
        program: the plan.
        post: receives to post when the step begins.
        inputs: messages of rows of the step's inputs, sent before everything else.
        opening: in place of ``inputs``, what is sent and taken before the first call; see ``CallPlan.moves``.
        calls: its calls in order.
        outputs: by number of the call, the message that brings an output home; empty elsewhere.
        sends: all messages and signals that it sends.
        reporters: the ranks whose end home must hear of: those of outputs, and of calls that nobody reads. All
            other calls have ended when these have.
        spreads: at a home that passes outputs on to all ranks, the message for each output's call.
        spread: on the others of these ranks, by number of the call, the message that brings it.
    """

    program: Program
    post: list[Incoming | Signal] = field(default_factory=list)
    inputs: list[tuple[Outgoing, int, int, int]] = field(default_factory=list)
    opening: list[Move] = field(default_factory=list)
    calls: list[CallPlan] = field(default_factory=list)
    outputs: dict[int, Incoming] = field(default_factory=dict)
    sends: list[Outgoing | Signal] = field(default_factory=list)
    reporters: frozenset[int] = frozenset()
    spreads: list[tuple[int, Outgoing]] = field(default_factory=list)
    spread: dict[int, Incoming] = field(default_factory=dict)


def plan_rank(
    programs: Programs,
    program: Program,
    rank: int,
    mesh: Mesh,
    *,
    tag: int,
    window: Sequence[int],
    inputs_everywhere: bool,
    outputs_everywhere: bool,
    direct: Direct | None = None,
) -> RankPlan:
    """Return what ``rank`` does.

    Args:
        programs: the programs of all ranks.
        program: the same plan, made ready to run.
        rank: this rank.
        mesh: its connections.
        tag: the tag of message 0; each message and each credit has one of its own, the same on all ranks.
        window: the most calls of each node that may have started while the first of them is still needed.
        inputs_everywhere: whether every rank holds the step's inputs, so that none are sent.
        outputs_everywhere: whether home passes the outputs on to all ranks.
        direct: what tensors on accelerators go by, in the order of programs lowered with ``rendezvous``.
    """
    planner = _Planner(programs, program, rank, mesh, tag, window, inputs_everywhere, direct)
    own = planner.plan()
    if outputs_everywhere:
        planner.spread_outputs()
    return own


def count_tags(programs: Programs, program: Program, window: Sequence[int]) -> int:
    """Return how many tags a plan takes."""
    credits = len(find_credits(program, programs.placement, window))
    return len(programs.messages) + credits + len(_output_calls(program))


def _find_reporters(programs: Programs, program: Program) -> frozenset[int]:
    rank = place_calls(program.plan, programs.placement)
    last = program.readers == 0
    last[_output_calls(program)] = True
    return frozenset(rank[last].tolist())


def _output_calls(program: Program) -> list[int]:
    graph = program.plan.graph
    return [call for name in graph.outputs for call in program.numbers[graph.index(name)]]


class _Planner:
    def __init__(
        self,
        programs: Programs,
        program: Program,
        rank: int,
        mesh: Mesh,
        tag: int,
        window: Sequence[int],
        inputs_everywhere: bool,
        direct: Direct | None,
    ) -> None:
        self._direct = direct
        self._stream_of: dict[int, Outgoing | Incoming] = {}
        self._rank, self._mesh, self._tag = rank, mesh, tag
        self._programs = programs
        self._inputs_everywhere = inputs_everywhere
        self._window = window
        self._credits = find_credits(program, programs.placement, window)
        self._own = RankPlan(program, reporters=_find_reporters(programs, program))
        self._incoming: dict[tuple[int, int, int], tuple[Incoming, bool]] = {}
        self._calls: dict[int, CallPlan] = {}
        self._arriving: dict[int, list[Incoming | Signal]] = {}  # by call that waits first

    def plan(self) -> RankPlan:
        self._receive()
        self._run()
        self._send()
        self._exchange_credits()
        self._post_ahead()
        self._release()
        if self._direct is not None:
            self._keep_to_one_order()
        return self._own

    def spread_outputs(self) -> None:
        """Have home pass each output on to all other ranks."""
        own, home = self._own, self._programs.placement.home
        first = self._tag + len(self._programs.messages) + len(self._credits)
        for tag, call in enumerate(_output_calls(own.program), first):
            if self._rank == home:
                others = [peer for peer in range(self._programs.placement.processes) if peer != home]
                stream = Outgoing(self._mesh, [(peer, tag) for peer in others])
                own.spreads.append((call, stream))
                own.sends.append(stream)
            else:
                own.spread[call] = Incoming(self._mesh, home, tag)
        own.post.extend(own.spread.values())

    def _mine(self, kind: ActionKind) -> Iterator[int]:
        own = self._programs[self._rank]
        return iter(own.numbers[own.kinds == kind].tolist())

    def _messages(self, kind: ActionKind) -> Iterator[Message]:
        for number in self._mine(kind):
            message = self._programs.messages[number]
            if not (self._inputs_everywhere and message.producer < 0):
                yield message

    def _receive(self) -> None:
        for message in self._messages(ActionKind.RECV):
            tag = self._tag + message.number
            if message.is_signal:
                signal = Signal(self._mesh, message.sender, tag)
                self._arriving.setdefault(message.readers[0], []).append(signal)
                continue
            direct = self._direct_with(message.sender)
            stream = self._stream_of[message.number] = Incoming(
                self._mesh, message.sender, tag, direct=direct
            )
            is_shared = len(message.readers) > 1 or message.is_output
            self._incoming[message.producer, message.start, message.stop] = stream, is_shared
            if message.is_output:
                self._own.outputs[message.producer] = stream
                self._own.post.append(stream)
            else:
                self._arriving.setdefault(message.readers[0], []).append(stream)

    def _run(self) -> None:
        links = self._own.program.links
        for number in self._mine(ActionKind.RUN):
            own = CallPlan(links[number], [])
            for read in own.links.reads:
                own.sources.append([self._source(*fragment) for fragment in read.fragments])
            if own.links.slices is not None:
                own.sole = [source for sources in own.sources for source in sources]
            self._calls[number] = own
            self._own.calls.append(own)
            own.waits = [one for one in self._arriving.get(number, ()) if isinstance(one, Signal)]

    def _source(self, producer: int, start: int, stop: int) -> Source:
        found = self._incoming.get((producer, start, stop))
        return Here(producer, start, stop) if found is None else There(found[0], stop - start, found[1])

    def _send(self) -> None:
        alike: dict[tuple[Any, ...], list[Message]] = {}
        for message in self._messages(ActionKind.SEND):
            if message.is_signal:
                signal = Signal(self._mesh, message.receiver, self._tag + message.number)
                self._calls[message.producer].signals.append(signal)
                self._own.sends.append(signal)
            else:
                alike.setdefault(self._what_is_sent(message), []).append(message)
        for messages in alike.values():
            self._send_together(messages)

    def _what_is_sent(self, message: Message) -> tuple[Any, ...]:
        """Return what tells a message from others, except who receives it; where order counts, it is one alone."""
        rows = message.producer, message.start, message.stop
        return (*rows, self._is_awaited(message), -1 if self._direct is None else message.number)

    def _send_together(self, messages: Sequence[Message]) -> None:
        first = messages[0]
        to = [(message.receiver, self._tag + message.number) for message in messages]
        awaited, direct = self._is_awaited(first), self._direct_with(first.receiver)
        stream = Outgoing(self._mesh, to, is_awaited=awaited, direct=direct)
        self._stream_of.update((message.number, stream) for message in messages)
        self._own.sends.append(stream)
        if first.producer < 0:
            self._own.inputs.append((stream, -1 - first.producer, first.start, first.stop))
        else:
            self._calls[first.producer].sends.append((stream, first.start, first.stop))

    def _is_awaited(self, message: Message) -> bool:
        # A home that runs calls itself takes outputs when it has run them: nobody may wait for that before.
        return bool(message.readers) or self._programs.placement.home_is_apart

    def _direct_with(self, peer: int) -> Direct | None:
        """Return what tensors on accelerators go by between this rank and another; a home apart has no device."""
        placement = self._programs.placement
        return None if placement.home_is_apart and peer == placement.home else self._direct

    def _keep_to_one_order(self) -> None:
        """Have each message sent and taken at its place in the rank's program."""
        own = self._programs[self._rank]
        moves = self._own.opening
        for kind, number in zip(own.kinds.tolist(), own.numbers.tolist(), strict=True):
            if kind == ActionKind.RUN:
                moves = self._calls[number].moves
            elif number in self._stream_of:
                message = self._programs.messages[number]
                source = -1 - message.producer
                moves.append((self._stream_of[number], source, message.start, message.stop))
        self._own.inputs.clear()
        for call in self._own.calls:
            call.sends.clear()

    def _exchange_credits(self) -> None:
        """Let a call wait for the ends of those that read what leaves its node's window."""
        first = self._tag + len(self._programs.messages)
        for number, credit in enumerate(self._credits):
            if credit.sender == self._rank:
                signal = Signal(self._mesh, credit.receiver, first + number)
                self._calls[credit.ended].signals.append(signal)
                self._own.sends.append(signal)
            elif credit.receiver == self._rank:
                signal = Signal(self._mesh, credit.sender, first + number)
                self._arriving.setdefault(credit.waiting, []).append(signal)
                self._calls[credit.waiting].waits.append(signal)
        order = [own.links.call for own in self._own.calls]
        for waiting, left in find_left(self._own.program, order, self._window).items():
            self._calls[waiting].left = [stream for call in left for stream, _, _ in self._calls[call].sends]

    def _post_ahead(self) -> None:
        calls = self._own.calls
        for at, own in enumerate(calls):
            arriving = self._arriving.get(own.links.call, [])
            (self._own.post if at < _AHEAD else calls[at - _AHEAD + 1].post).extend(arriving)

    def _release(self) -> None:
        last_read: dict[int, CallPlan] = {}
        last_taken: dict[Incoming, CallPlan] = {}
        for own in self._own.calls:
            for source in (source for sources in own.sources for source in sources):
                if isinstance(source, There):
                    last_taken[source.stream] = own
                elif source.producer >= 0:
                    last_read[source.producer] = own
        outputs = set(self._own.outputs.values())
        for stream, own in last_taken.items():
            if stream not in outputs:
                own.releases.append(stream)
        at_home = self._rank == self._programs.placement.home
        for number, own in self._calls.items():
            is_output = at_home and own.links.is_output
            own.keeps = number in last_read or is_output
            if number in last_read and not is_output:
                last_read[number].drops.append(number)
