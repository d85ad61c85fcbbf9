"""The programs of all ranks: columns of actions, turned into objects when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray

from flowsched.plan import Plan
from flowsched.plan.table import Int64, seal
from flowsched.programs.actions import Action, Recv, Run, Send
from flowsched.programs.messages import Messages
from flowsched.programs.placement import Placement


class ActionKind(IntEnum):
    """What an action is, in the columns of a program."""

    RECV = 0
    RUN = 1
    SEND = 2


@dataclass(frozen=True, eq=False, repr=False)
class Programs(Sequence["RankProgram"]):
    """One program for each rank, and one for a home apart; ``programs[rank]`` is that of a rank.

    Attributes:
        plan: the plan.
        placement: which rank serves which replica.
        rendezvous: whether the order is safe even where every send waits for its receiver.
        messages: what ranks send to each other.
        kinds: (actions,) :class:`ActionKind` of each action, rank by rank, in the order of the rank.
        numbers: (actions,) number of the call that is run, or of the message that is sent or received.
        offsets: (processes + 1,) where each rank's actions begin.
    """

    plan: Plan
    placement: Placement
    rendezvous: bool
    messages: Messages
    kinds: NDArray[np.int8]
    numbers: Int64
    offsets: Int64

    def __post_init__(self) -> None:
        for field in fields(self)[-3:]:
            seal(getattr(self, field.name))

    def __len__(self) -> int:
        return self.placement.processes

    @overload
    def __getitem__(self, rank: int) -> RankProgram: ...
    @overload
    def __getitem__(self, rank: slice) -> Sequence[RankProgram]: ...
    def __getitem__(self, rank: int | slice) -> RankProgram | Sequence[RankProgram]:
        ranks = range(len(self))[rank]
        return RankProgram(self, ranks) if isinstance(ranks, int) else [RankProgram(self, at) for at in ranks]

    def __iter__(self) -> Iterator[RankProgram]:
        return (RankProgram(self, rank) for rank in range(len(self)))

    def __repr__(self) -> str:
        sizes = f"{len(self.messages)} messages, {len(self.kinds)} actions"
        return f"<Programs {self.plan.graph.name}: {self.placement.ranks} ranks, {sizes}>"

    def __str__(self) -> str:
        from flowsched.inspect.programs import render_programs

        return render_programs(self)

    def action(self, kind: int, number: int) -> Action:
        """Return one action in the form that prints and parses."""
        if kind == ActionKind.RUN:
            return Run(self._name(number), *self.plan.made_rows(number), number)
        message = self.messages[number]
        shift = 0 if message.producer < 0 or message.is_signal else self.plan.made_rows(message.producer)[0]
        readers = [self._name(reader) for reader in message.readers]
        peer = message.sender if kind == ActionKind.RECV else message.receiver
        return (Recv if kind == ActionKind.RECV else Send)(
            producer=self._name(message.producer),
            start=message.start + shift,
            stop=message.stop + shift,
            peer=None if self.placement.home_is_apart and peer == self.placement.home else peer,
            readers=(*readers, "output") if message.is_output else tuple(readers),
            message=number,
        )

    def _name(self, producer: int) -> str:
        plan = self.plan
        if producer < 0:
            return plan.graph.sources[-1 - producer]
        node = plan.graph.nodes[plan.table.node[producer]].name
        return f"{node}.{plan.table.replica[producer]}.{plan.table.position[producer]}"


@dataclass(frozen=True, eq=False, repr=False)
class RankProgram:
    """What one rank does, in its order; prints one action a line.

    Attributes:
        programs: the programs of all ranks.
        rank: the rank.
    """

    programs: Programs
    rank: int

    @property
    def kinds(self) -> NDArray[np.int8]:
        """(actions,) :class:`ActionKind` of each action."""
        return self.programs.kinds[self._own]

    @property
    def numbers(self) -> Int64:
        """(actions,) number of the call that is run, or of the message that is sent or received."""
        return self.programs.numbers[self._own]

    @cached_property
    def actions(self) -> tuple[Action, ...]:
        """The actions, in the form that prints and parses."""
        return tuple(self)

    def __len__(self) -> int:
        return len(self.kinds)

    def __iter__(self) -> Iterator[Action]:
        return map(self.programs.action, self.kinds.tolist(), self.numbers.tolist())

    def __repr__(self) -> str:
        return f"<RankProgram {self.programs.placement.say_rank(self.rank)}: {len(self)} actions>"

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    @property
    def _own(self) -> slice:
        return slice(int(self.programs.offsets[self.rank]), int(self.programs.offsets[self.rank + 1]))
