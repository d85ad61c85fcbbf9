"""The messages between ranks, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray

from flowsched.plan.table import Int32, Int64, seal


@dataclass(frozen=True, slots=True)
class Message:
    """What one rank sends to another at once.

    Attributes:
        number: its place among the messages.
        sender, receiver: ranks.
        producer: number of the call that makes the rows; ``-1 - s`` for source ``s``.
        start, stop: half-open rows, counted from the first that the producer makes (over the whole source);
            both 0 for a signal.
        readers: numbers of the receiver's calls that read them, in the plan's sequence. A signal is read by
            the first call of each replica of the nodes that wait.
        is_output: whether the rows are all that a call of an output node makes, on their way home.
    """

    number: int
    sender: int
    receiver: int
    producer: int
    start: int
    stop: int
    readers: tuple[int, ...]
    is_output: bool

    @property
    def is_signal(self) -> bool:
        """Whether it carries no rows and only says that the producer, the last call of a node that others
        come ``after`` on the sender, has ended."""
        return self.stop == 0


@dataclass(frozen=True, eq=False, repr=False)
class Messages(Sequence[Message]):
    """All messages of the programs of a plan, in the order in which each rank sends its own.

    Attributes:
        sender, receiver: (messages,) ranks.
        producer: (messages,) number of the producing call; ``-1 - s`` for source ``s``.
        start, stop: (messages,) own rows of the producer; both 0 for a signal.
        is_output: (messages,) whether they are an output on its way home.
        reader: (readers,) numbers of the calls that read each message, message by message.
        reader_offsets: (messages + 1,) offsets into ``reader``.
    """

    sender: Int32
    receiver: Int32
    producer: Int64
    start: Int64
    stop: Int64
    is_output: NDArray[np.bool_]
    reader: Int64
    reader_offsets: Int64

    def __post_init__(self) -> None:
        for field in fields(self):
            seal(getattr(self, field.name))

    def __len__(self) -> int:
        return len(self.sender)

    @overload
    def __getitem__(self, at: int) -> Message: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Message]: ...
    def __getitem__(self, at: int | slice) -> Message | Sequence[Message]:
        if isinstance(at, slice):
            return [self[number] for number in range(len(self))[at]]
        number = range(len(self))[at]
        return Message(
            number=number,
            sender=int(self.sender[number]),
            receiver=int(self.receiver[number]),
            producer=int(self.producer[number]),
            start=int(self.start[number]),
            stop=int(self.stop[number]),
            readers=tuple(
                self.reader[self.reader_offsets[number] : self.reader_offsets[number + 1]].tolist()
            ),
            is_output=bool(self.is_output[number]),
        )

    def __repr__(self) -> str:
        return f"<Messages: {len(self)} between ranks>"

    def read_by(self, call: int) -> tuple[int, ...]:
        """Return the numbers of the messages that a call reads, each once."""
        number, offsets = self._by_reader
        numbers: list[int] = (
            number[offsets[call] : offsets[call + 1]].tolist() if call + 1 < len(offsets) else []
        )
        return tuple(numbers)

    @cached_property
    def _by_reader(self) -> tuple[Int64, Int64]:
        """The messages in the order of their readers, and where those of each call begin."""
        number = np.repeat(np.arange(len(self)), np.diff(self.reader_offsets))
        offsets: Int64 = np.concatenate([[0], np.cumsum(np.bincount(self.reader))])
        return number[np.argsort(self.reader, kind="stable")], offsets
