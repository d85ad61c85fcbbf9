"""Where every call and message stands in the programs, as the checks look at them."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from flowsched.errors import Problem
from flowsched.plan import Plan
from flowsched.plan.table import Int64
from flowsched.programs.programs import ActionKind, Programs

_NOWHERE = -1


class Standing:
    """The programs beside their plan. Places are counted over the actions of all ranks, rank by rank: of two
    on one rank, the lower comes first.

    Attributes:
        programs: the programs.
        plan: the plan.
        rank: (actions,) the rank of each action.
        call_rank: (calls,) the rank that each call is placed on.
        run_at: (calls,) the last place where each call is run; -1 for nowhere.
        sent_at, received_at: (messages,) likewise.
    """

    def __init__(self, programs: Programs, plan: Plan) -> None:
        self.programs = programs
        self.plan = plan
        self.messages = programs.messages
        self.rank: Int64 = np.repeat(np.arange(len(programs)), np.diff(programs.offsets))
        self.call_rank = self._place_calls()
        self.run_at = self._find(ActionKind.RUN, plan.table.calls)
        self.sent_at = self._find(ActionKind.SEND, len(self.messages))
        self.received_at = self._find(ActionKind.RECV, len(self.messages))

    def times(self, kind: ActionKind) -> Int64:
        """Return how often each call is run, or each message sent or received."""
        length = self.plan.table.calls if kind == ActionKind.RUN else len(self.messages)
        counts: Int64 = np.bincount(self._numbers(kind), minlength=length)
        return counts

    @cached_property
    def owner(self) -> Int64:
        """(calls,) index of the node whose replicas serve each call."""
        graph = self.plan.graph
        owners = [graph.index(node.replicas_of or node.name) for node in graph]
        owner: Int64 = np.array(owners, np.int64)[self.plan.table.node]
        return owner

    @cached_property
    def message_of_reader(self) -> Int64:
        """(readers,) the message that each entry of ``messages.reader`` belongs to."""
        return np.repeat(np.arange(len(self.messages)), np.diff(self.messages.reader_offsets))

    def holders(self, producer: Int64) -> Int64:
        """Return the rank that has the rows of each producer: for those of a source that is home."""
        holder = np.full(len(producer), self.programs.placement.home, np.int64)
        made = producer >= 0
        holder[made] = self.call_rank[producer[made]]
        return holder

    def made(self, read: Int64, call: Int64) -> Int64:
        """Return the first rows that calls make of the first that they read, or the last likewise."""
        nodes = self.plan.graph.nodes
        node = self.plan.table.node[call]
        collapse, expand = (
            np.array([getattr(each, name) for each in nodes], np.int64)[node]
            for name in ("collapse", "expand")
        )
        made: Int64 = read // collapse * expand
        return made

    def blame(self, code: str, at: int, message: str, mend: str) -> Problem:
        """Return a problem of the action at a place."""
        rank = int(self.rank[at])
        action = self.say(at)
        name = self.programs.placement.say_rank(rank)
        return Problem(code, f"{name}, action {at - self.programs.offsets[rank]} ({action})", message, mend)

    def say(self, at: int) -> str:
        """Return the action at a place."""
        programs = self.programs
        return " ".join(str(programs.action(int(programs.kinds[at]), int(programs.numbers[at]))).split())

    def say_rank(self, rank: int) -> str:
        """Return the rank in words."""
        return self.programs.placement.say_rank(int(rank))

    def say_call(self, number: int) -> str:
        """Return a call with the rows it makes."""
        return " ".join(str(self.programs.action(ActionKind.RUN, int(number))).split()[1:])

    def say_message(self, number: int) -> str:
        """Return a message with both its ranks."""
        text = str(self.programs.action(ActionKind.SEND, int(number))).split(maxsplit=1)[1]
        return f"message {number} ({text}, sent by {self.say_rank(self.messages.sender[number])})"

    def _numbers(self, kind: ActionKind) -> Int64:
        numbers: Int64 = self.programs.numbers[self.programs.kinds == kind]
        return numbers

    def _find(self, kind: ActionKind, length: int) -> Int64:
        place = np.full(length, _NOWHERE, np.int64)
        place[self._numbers(kind)] = np.flatnonzero(self.programs.kinds == kind)
        return place

    def _place_calls(self) -> Int64:
        graph, table = self.plan.graph, self.plan.table
        ranks = [self.programs.placement.replicas.get(node.name, ()) for node in graph]
        begins = np.cumsum([0, *map(len, ranks)])
        joined = np.array([rank for own in ranks for rank in own], np.int64)
        placed: Int64 = joined[begins[self.owner] + table.replica]
        return placed


def first_true(wrong: NDArray[np.bool_]) -> int:
    """Return the place of the first that is wrong."""
    return int(wrong.argmax())
