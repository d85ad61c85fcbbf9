"""Calls in one line: ``reward.0.0[0:2] <- policy.0.0[0:2], reference.0.0[0:2]``.

A call is written as its node, its replica and its place in the replica's queue, then the rows it makes.
After the arrow come its inputs, divided by commas; the fragments of one input are joined by ``+``. ``* 4`` says
that four consecutive rows share one row of an input: ``baseline.0.0[2:3] * 4``, or, where it has several fragments,
``(baseline.0.0[2:3] + baseline.1.0[3:4]) * 4``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from flowsched.errors import FlowschedError

_NAME = r"[A-Za-z_][A-Za-z0-9_-]*"
_NUMBER = r"[0-9]{1,18}"  # rows are counted in 64 bits
_ROWS = rf"\[(?P<start>{_NUMBER}):(?P<stop>{_NUMBER})\]"
_FRAGMENT = re.compile(rf"(?P<producer>{_NAME}(?:\.{_NUMBER}\.{_NUMBER})?){_ROWS}")
_CALL = re.compile(rf"(?P<node>{_NAME})\.(?P<replica>{_NUMBER})\.(?P<position>{_NUMBER}){_ROWS}")
_TIMES = re.compile(r"[1-9][0-9]{0,17}")
_EXAMPLE = "reward.0.0[0:2] <- policy.0.0[0:2], reference.0.0[0:2]"
_SHARED = "(baseline.0.0[0:1] + baseline.1.0[1:2]) * 4"
_LONGEST_QUOTED = 200


class NotationError(FlowschedError):
    """Text that is not a call.

    Args:
        text: the text.
        part: what was expected where it stands.
        example: how it is written.
    """

    code = "notation"

    def __init__(self, text: str, part: str, example: str = _EXAMPLE) -> None:
        self.arguments = (text, part, example)
        shown = text if len(text) <= _LONGEST_QUOTED else f"{text[:_LONGEST_QUOTED]}..."
        super().__init__(f"{shown!r} is not {part}. Write it like {example!r}")

    def __reduce__(self) -> tuple[type[NotationError], tuple[str, str, str]]:
        return type(self), self.arguments


@dataclass(frozen=True)
class Fragment:
    """The rows ``[start, stop)`` that one call or source makes and one call reads.

    Attributes:
        producer: ``node.replica.position`` of the producing call, or the name of a source.
        start, stop: rows, counted over all that the producing node makes.
    """

    producer: str
    start: int
    stop: int

    def __str__(self) -> str:
        return f"{self.producer}[{self.start}:{self.stop}]"


@dataclass(frozen=True)
class Feed:
    """What a call reads from one input.

    Attributes:
        fragments: in the order of the rows.
        times: consecutive rows of the call that share one row of this input.
    """

    fragments: tuple[Fragment, ...]
    times: int = 1

    def __str__(self) -> str:
        return join_fragments([str(fragment) for fragment in self.fragments], self.times)


@dataclass(frozen=True)
class Call:
    """One invocation of one replica on one batch, as it is printed and parsed.

    Attributes:
        node: name of the node.
        replica: index of the replica.
        position: place in the replica's queue.
        start, stop: the rows it makes.
        feeds: one for each input.
    """

    node: str
    replica: int
    position: int
    start: int
    stop: int
    feeds: tuple[Feed, ...]

    @property
    def name(self) -> str:
        """``node.replica.position``, by which fragments name the call."""
        return f"{self.node}.{self.replica}.{self.position}"

    def __str__(self) -> str:
        return f"{self.name}[{self.start}:{self.stop}] <- {', '.join(map(str, self.feeds))}"


def join_fragments(fragments: Sequence[str], times: int) -> str:
    """Return what a call reads from one input; ``times`` of its consecutive rows share one row of the input.

    >>> join_fragments(["a.0.0[0:1]"], 4), join_fragments(["a.0.0[0:1]", "a.1.0[1:2]"], 4)
    ('a.0.0[0:1] * 4', '(a.0.0[0:1] + a.1.0[1:2]) * 4')
    """
    joined = " + ".join(fragments)
    if times == 1:
        return joined
    return f"{joined} * {times}" if len(fragments) == 1 else f"({joined}) * {times}"


def parse_call(text: str) -> Call:
    """Read one call back from its notation.

    Raises:
        NotationError: the text is not a call.

    >>> parse_call("value.1.0[22:43] <- policy.0.2[20:32] + policy.0.3[32:43]").feeds[0].fragments[1].start
    32
    """
    made, arrow, read = text.partition("<-")
    match = _CALL.fullmatch(made.strip())
    if not arrow or match is None:
        raise NotationError(text, "a call")
    return Call(
        node=match["node"],
        replica=int(match["replica"]),
        position=int(match["position"]),
        start=int(match["start"]),
        stop=int(match["stop"]),
        feeds=tuple(_parse_feed(part) for part in read.split(",")),
    )


def parse_calls(text: str) -> list[Call]:
    """Read calls back, one a line; empty lines are passed over.

    Raises:
        NotationError: a line is not a call.
    """
    return [parse_call(line) for line in text.splitlines() if line.strip()]


def _parse_feed(text: str) -> Feed:
    joined, star, factor = (part.strip() for part in text.partition("*"))
    if not star:
        return Feed(_parse_fragments(joined))
    if _TIMES.fullmatch(factor) is None:
        raise NotationError(text, "an input", _SHARED)
    if joined.startswith("(") and joined.endswith(")"):
        joined = joined[1:-1]
    elif "+" in joined:  # would read as if only the last fragment were shared
        raise NotationError(text, "an input that says what is shared", _SHARED)
    return Feed(_parse_fragments(joined), int(factor))


def _parse_fragments(text: str) -> tuple[Fragment, ...]:
    return tuple(_parse_fragment(part) for part in text.split("+"))


def _parse_fragment(text: str) -> Fragment:
    match = _FRAGMENT.fullmatch(text.strip())
    if match is None:
        raise NotationError(text, "a fragment")
    return Fragment(match["producer"], int(match["start"]), int(match["stop"]))
