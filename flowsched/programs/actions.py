"""The actions of a rank in one line each: ``SEND policy.1.0[4:6] to rank 5 for reference.2.0``.

Rows are counted over all that the producing node makes, as in the notation of calls. ``done policy.1.3`` is no
rows but the news that this call, and with it all of its node's on the sender, has ended.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from flowsched.plan.notation import NotationError

_NAME = r"[A-Za-z_][A-Za-z0-9_-]*"
_NUMBER = r"[0-9]{1,18}"
_CALL = rf"{_NAME}\.{_NUMBER}\.{_NUMBER}"
_ROWS = rf"\[(?P<start>{_NUMBER}):(?P<stop>{_NUMBER})\]"
_RUN = re.compile(rf"RUN +(?P<call>{_CALL}){_ROWS}")
_MOVE = re.compile(
    rf"(?P<kind>RECV|SEND) +(?:done (?P<ended>{_CALL})|(?P<producer>{_CALL}|{_NAME}){_ROWS})"
    rf" (?P<way>from|to) (?:home|rank (?P<peer>{_NUMBER}))(?: for (?P<readers>.+))?"
)
_READER = re.compile(rf"{_CALL}|output")
_WAYS = {"RECV": "from", "SEND": "to"}
_EXAMPLE = "SEND policy.1.0[4:6] to rank 5 for reference.2.0, reward.2.0"


@dataclass(frozen=True)
class Run:
    """Run a call, once all that it reads is there.

    Attributes:
        call: ``node.replica.position``.
        start, stop: the rows it makes.
        number: number of the call in the plan's table; -1 in what was parsed.
    """

    call: str
    start: int
    stop: int
    number: int = field(default=-1, compare=False)

    def __str__(self) -> str:
        return f"RUN  {self.call}[{self.start}:{self.stop}]"


@dataclass(frozen=True)
class _Move:
    """Rows, or the news that a call has ended, that go from one rank to another.

    Attributes:
        producer: ``node.replica.position`` of the producing call, or the name of a source.
        start, stop: the rows, counted over all that the producing node makes; both 0 where the message only
            says that the call has ended.
        peer: the other rank; None for a home apart.
        readers: ``node.replica.position`` of the receiver's calls that wait for it; last ``"output"``, where
            the rows are an output of the graph.
        message: number of the message; -1 in what was parsed.
    """

    producer: str
    start: int
    stop: int
    peer: int | None
    readers: tuple[str, ...] = ()
    message: int = field(default=-1, compare=False)

    @property
    def is_signal(self) -> bool:
        """Whether it carries no rows and only says that the call has ended."""
        return self.stop == 0

    def _say(self, kind: str) -> str:
        what = f"done {self.producer}" if self.is_signal else f"{self.producer}[{self.start}:{self.stop}]"
        peer = "home" if self.peer is None else f"rank {self.peer}"
        readers = f" for {', '.join(self.readers)}" if self.readers else ""
        return f"{kind} {what} {_WAYS[kind]} {peer}{readers}"


@dataclass(frozen=True)
class Recv(_Move):
    """Post the receive of a message from ``peer``; the calls that it is for wait for it, nothing else does."""

    def __str__(self) -> str:
        return self._say("RECV")


@dataclass(frozen=True)
class Send(_Move):
    """Begin to send a message to ``peer``."""

    def __str__(self) -> str:
        return self._say("SEND")


Action = Recv | Run | Send


def parse_action(text: str) -> Action:
    """Read one action back from its line; numbers of calls and messages are not in it.

    Raises:
        NotationError: the text is no action.

    >>> parse_action("RECV prompts[4:8] from home for policy.1.0")
    Recv(producer='prompts', start=4, stop=8, peer=None, readers=('policy.1.0',), message=-1)
    """
    line = text.strip()
    if run := _RUN.fullmatch(line):
        return Run(run["call"], int(run["start"]), int(run["stop"]))
    move = _MOVE.fullmatch(line)
    if move is None or move["way"] != _WAYS[move["kind"]]:
        raise NotationError(text, "an action", _EXAMPLE)
    readers = tuple(move["readers"].split(", ")) if move["readers"] else ()
    if any(_READER.fullmatch(reader) is None for reader in readers):
        raise NotationError(text, "an action", _EXAMPLE)
    start, stop = (0, 0) if move["ended"] else (int(move["start"]), int(move["stop"]))
    peer = None if move["peer"] is None else int(move["peer"])
    kind = Recv if move["kind"] == "RECV" else Send
    return kind(move["ended"] or move["producer"], start, stop, peer, readers)
