"""Programs run without workers: whether every rank comes to its end, and when, for costs that are given.

Each rank works off its actions one by one. What it waits for does not depend on when it comes there, so that the
ranks may be worked off in any order; only the clock of each is kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from flowsched.programs.messages import Message
from flowsched.programs.programs import ActionKind, Programs


@dataclass(frozen=True)
class Costs:
    """Seconds that things take; nothing by default. Ranks have the way between them to themselves.

    Attributes:
        call: of the number of a call, how long it runs.
        message: of a message, how long it is under way once it is sent and its receive is posted.
        action: how long a rank is busy with each send and each receive.
    """

    call: Callable[[int], float] = lambda _: 0.0
    message: Callable[[Message], float] = lambda _: 0.0
    action: float = 0.0


@dataclass(frozen=True)
class Simulation:
    """What became of a step.

    Attributes:
        seconds: when the last rank came to its end and the last message to its receiver.
        busy: for each rank, the seconds that it ran calls.
        ended: when each call ended, by its number; calls that can never start are not there.
        stopped: by rank, the action at which it waits for ever; empty where all come to their ends.
    """

    seconds: float
    busy: tuple[float, ...]
    ended: dict[int, float] = field(repr=False)
    stopped: dict[int, str]


def simulate(programs: Programs, costs: Costs | None = None, *, capacity: int | None = None) -> Simulation:
    """Run programs without workers. Takes time near-linear in their actions.

    Args:
        programs: programs that :func:`check_programs` passes.
        costs: what calls and messages take.
        capacity: the most messages between one rank and another that may be sent before their receives are
            posted; a send that would be one more waits. 0 lets each send wait for its receiver and each
            receive for its sender, as ``rendezvous=True`` is made for; None lets no send wait.

    >>> import flowsched as fs
    >>> graph = fs.Graph("one", sources=["x"], nodes=[fs.Node("double", inputs=["x"], replicas=2)])
    >>> programs = fs.compile(graph, samples=6).programs()
    >>> simulate(programs, Costs(call=lambda number: 0.5)).seconds
    0.5
    """
    ranks = (
        _Meeting(programs, costs or Costs())
        if capacity == 0
        else _Posting(programs, costs or Costs(), capacity)
    )
    return ranks.run()


class _Ranks(ABC):
    """How far each rank has come, and what it waits for."""

    def __init__(self, programs: Programs, costs: Costs) -> None:
        self.programs = programs
        self.messages = programs.messages
        self.costs = costs
        self.at: list[int] = programs.offsets[:-1].tolist()
        self.clock = [0.0] * len(programs)
        self.arrived: dict[int, float] = {}
        self._busy = [0.0] * len(programs)
        self._ended: dict[int, float] = {}
        self._able = list(range(len(programs)))
        self._waiting: dict[int, list[int]] = defaultdict(list)

    def run(self) -> Simulation:
        """Work off all ranks as far as they come."""
        kinds, numbers = self.programs.kinds.tolist(), self.programs.numbers.tolist()
        end: list[int] = self.programs.offsets[1:].tolist()
        do = {ActionKind.RECV: self.receive, ActionKind.RUN: self._run_call, ActionKind.SEND: self.send}
        while self._able:
            rank = self._able.pop()
            while self.at[rank] < end[rank]:
                at = self.at[rank]
                lacking = do[kinds[at]](rank, numbers[at])
                if lacking is not None:
                    self._waiting[lacking].append(rank)
                    break
                self.at[rank] += 1
        stopped = {
            rank: str(self.programs.action(kinds[at], numbers[at]))
            for rank, at in enumerate(self.at)
            if at < end[rank]
        }
        seconds = max([*self.clock, *self.arrived.values()], default=0.0)
        return Simulation(seconds, tuple(self._busy), self._ended, stopped)

    @abstractmethod
    def receive(self, rank: int, message: int) -> int | None:
        """Do what a rank does to receive a message; return the message that it must wait for, or None."""

    @abstractmethod
    def send(self, rank: int, message: int) -> int | None:
        """Likewise to send one."""

    def wake(self, message: int) -> None:
        """Let the ranks go on that wait for something to happen to a message."""
        self._able += self._waiting.pop(message, ())

    def _run_call(self, rank: int, call: int) -> int | None:
        start = self.clock[rank]
        for message in self.messages.read_by(call):
            if message not in self.arrived:
                return message
            start = max(start, self.arrived[message])
        seconds = self.costs.call(call)
        self._busy[rank] += seconds
        self.clock[rank] = self._ended[call] = start + seconds
        return None


class _Posting(_Ranks):
    """Receives are posted, and sends wait only for room on their channel."""

    def __init__(self, programs: Programs, costs: Costs, capacity: int | None) -> None:
        super().__init__(programs, costs)
        self._capacity = capacity
        self._sent: dict[int, float] = {}
        self._posted: dict[int, float] = {}
        self._channels: dict[tuple[int, int], list[int]] = defaultdict(list)
        self._sender: list[int] = self.messages.sender.tolist()
        self._receiver: list[int] = self.messages.receiver.tolist()

    def receive(self, rank: int, message: int) -> int | None:
        self.clock[rank] += self.costs.action
        self._posted[message] = self.clock[rank]
        self._meet(message)
        return None

    def send(self, rank: int, message: int) -> int | None:
        channel = self._channels[self._sender[message], self._receiver[message]]
        if self._capacity is not None and len(channel) >= self._capacity:
            last = channel[-self._capacity]
            if last not in self._posted:
                return last
            self.clock[rank] = max(self.clock[rank], self._posted[last])
        self.clock[rank] += self.costs.action
        self._sent[message] = self.clock[rank]
        channel.append(message)
        self._meet(message)
        return None

    def _meet(self, message: int) -> None:
        if message in self._sent and message in self._posted:
            begun = max(self._sent[message], self._posted[message])
            self.arrived[message] = begun + self.costs.message(self.messages[message])
        self.wake(message)


class _Meeting(_Ranks):
    """Sends and receives wait for each other."""

    def __init__(self, programs: Programs, costs: Costs) -> None:
        super().__init__(programs, costs)
        self._first: dict[int, int] = {}

    def receive(self, rank: int, message: int) -> int | None:
        if message in self.arrived:  # the other rank came second, and has moved the clock of this one
            return None
        if message not in self._first:
            self._first[message] = rank
            return message
        other = self._first[message]
        begun = max(self.clock[rank], self.clock[other]) + self.costs.action
        self.clock[rank] = self.clock[other] = begun + self.costs.message(self.messages[message])
        self.arrived[message] = self.clock[rank]
        self.wake(message)
        return None

    send = receive
