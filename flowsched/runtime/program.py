"""A plan made ready to run: what each call waits for, reads and lets go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np

from flowsched.plan import Plan
from flowsched.plan.table import Int64
from flowsched.runtime.usual import Usual

_KEPT_CALLS = 65_536  # in plans of more, what a call has to do with others is found anew when it runs


@dataclass(frozen=True)
class Read:
    """What a call reads from one input.

    Attributes:
        fragments: producer (the number of a call; ``-1 - s`` for source ``s``) and the half-open rows of
            its own output (of the whole source) that are read.
        times: rows of the call that share one row of this input.
        start, stop: the rows that the call takes, counted from the first row of the first fragment, in the
            call's own rows.
    """

    fragments: tuple[tuple[int, int, int], ...]
    times: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Links:
    """What one call has to do with others.

    Attributes:
        call: number of the call.
        node: index of its node.
        owner: name of the node that owns its replica.
        replica: index of the replica.
        made: rows that it must make.
        reads: what it reads, one entry for each input of its node.
        slices: the only fragment of each input, where every input is a slice of what one call made; or None.
        readers: numbers of the calls that read its output.
        producers: numbers of the calls whose output it reads.
        successor: number of the next call in its replica's queue; -1 for the last one.
        followers: the readers, and the successor if there is one: all that wait for its end.
        is_output: whether what it makes belongs to an output of the graph.
    """

    call: int
    node: int
    owner: str
    replica: int
    made: int
    reads: tuple[Read, ...]
    slices: tuple[tuple[int, int, int], ...] | None
    readers: tuple[int, ...]
    producers: tuple[int, ...]
    successor: int
    followers: tuple[int, ...]
    is_output: bool


class Program:
    """The static side of running a plan, computed once and shared by all steps of the same size.

    Attributes:
        plan: the plan.
        waits: (calls,) how many things must happen before each call can start: calls it reads from have
            ended, the call before it in its replica's queue has ended, nodes in its ``after`` have ended.
        readers: (calls,) how many calls read the output of each call.
        names: the name of each node.
        usual: by index of a node, what its last outputs were like; kept from step to step.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.names = [node.name for node in plan.graph.nodes]
        self.usual: dict[int, Usual | None] = {}
        table = plan.table
        calls = table.calls
        per_call = np.diff(table.feed[self._first_feed])
        reader = np.repeat(np.arange(calls), per_call)
        inner = table.producer >= 0
        self._producer, self._reader = table.producer[inner], reader[inner]
        self._by_producer = self._reader[np.argsort(self._producer, kind="stable")]
        self.readers: Int64 = np.bincount(self._producer, minlength=calls)
        producers = np.bincount(self._reader, minlength=calls)
        self._readers_at = np.concatenate([[0], np.cumsum(self.readers)])
        self._producers_at = np.concatenate([[0], np.cumsum(producers)])
        self._successor = self._queue_successors()
        self.waits: Int64 = producers
        self.waits[self._successor[self._successor >= 0]] += 1
        for index, waiting in self.awaited.items():
            for own in waiting if self.numbers[index] else ():
                self.waits[own.start : own.stop] += 1

    @cached_property
    def links(self) -> Sequence[Links]:
        """What each call has to do with others, by its number."""
        calls = self.plan.table.calls
        found = _OnDemand(calls, self.find_links)
        return found if calls > _KEPT_CALLS else list(found)

    @cached_property
    def first_calls(self) -> list[int]:
        """Numbers of the calls that wait for nothing."""
        found: list[int] = np.flatnonzero(self.waits == 0).tolist()
        return found

    @cached_property
    def numbers(self) -> tuple[range, ...]:
        """Numbers of the calls of each node, by its index."""
        return tuple(node.numbers for node in self.plan)

    @cached_property
    def awaited(self) -> dict[int, list[range]]:
        """By index of a node that others come ``after``, the numbers of the calls of each of these."""
        graph = self.plan.graph
        found: dict[int, list[range]] = {}
        for own, node in zip(self.numbers, graph, strict=True):
            for name in node.after:
                found.setdefault(graph.index(name), []).append(own)
        return found

    @cached_property
    def spans(self) -> list[int]:
        """For each node, the most consecutive calls that are begun and still needed when all calls run one
        by one in sequence: a smaller window than this could wait for itself for ever."""
        plan = self.plan
        sequence = plan.table.sequence
        released = sequence.copy()
        np.maximum.at(released, self._producer, sequence[self._reader])
        spans = []
        for start, stop in zip(plan.call_offsets[:-1], plan.call_offsets[1:], strict=True):
            own = np.maximum.accumulate(released[start:stop])
            oldest = np.searchsorted(own, sequence[start:stop], side="left")
            spans.append(int((np.arange(stop - start) - oldest + 1).max(initial=1)))
        return spans

    def find_links(self, call: int) -> Links:
        """Return what a call has to do with others, found anew: for who needs a few of very many calls."""
        plan, index = self.plan, int(self.plan.table.node[call])
        node = plan.graph.nodes[index]
        start, stop = plan.made_rows(call)
        reads = self._find_reads(call)
        whole = all(len(read.fragments) == 1 and read.times == 1 for read in reads)
        readers = tuple(self._by_producer[self._readers_at[call] : self._readers_at[call + 1]].tolist())
        successor = int(self._successor[call])
        return Links(
            call=call,
            node=index,
            owner=plan.graph.owner(node.name).name,
            replica=int(plan.table.replica[call]),
            made=stop - start,
            reads=reads,
            slices=tuple(read.fragments[0] for read in reads) if whole else None,
            readers=readers,
            producers=tuple(self._producer[self._producers_at[call] : self._producers_at[call + 1]].tolist()),
            successor=successor,
            followers=(*readers, successor) if successor >= 0 else readers,
            is_output=node.name in plan.graph.outputs,
        )

    @cached_property
    def _first_feed(self) -> Int64:
        """(calls + 1,) the first feed of each call."""
        widths = np.array([len(node.inputs) for node in self.plan.graph.nodes])
        return np.concatenate([[0], np.cumsum(widths[self.plan.table.node])])

    def _queue_successors(self) -> Int64:
        """Return (calls,) the next call in the same replica's queue; -1 for the last one."""
        table, graph = self.plan.table, self.plan.graph
        owner = np.array([graph.index(graph.owner(node.name).name) for node in graph.nodes])[table.node]
        queue = np.lexsort((table.position, table.replica, owner))
        same = (owner[queue][1:] == owner[queue][:-1]) & (
            table.replica[queue][1:] == table.replica[queue][:-1]
        )
        successor = np.full(table.calls, -1, np.int64)
        successor[queue[:-1][same]] = queue[1:][same]
        return successor

    def _find_reads(self, call: int) -> tuple[Read, ...]:
        plan, table = self.plan, self.plan.table
        times = plan.rows[plan.graph.nodes[table.node[call]].name].times
        start, stop = int(table.start[call]), int(table.stop[call])
        reads = []
        for feed, each in enumerate(times, int(self._first_feed[call])):
            first, last = int(table.feed[feed]), int(table.feed[feed + 1])
            fragments = tuple(self._own_rows(at) for at in range(first, last))
            shift = int(table.fragment_start[first]) * each
            reads.append(Read(fragments, each, start - shift, stop - shift))
        return tuple(reads)

    def _own_rows(self, at: int) -> tuple[int, int, int]:
        """Return a fragment in rows counted from the first that its producer call makes."""
        table = self.plan.table
        producer = int(table.producer[at])
        shift = self.plan.made_rows(producer)[0] if producer >= 0 else 0
        return producer, int(table.fragment_start[at]) - shift, int(table.fragment_stop[at]) - shift


class _OnDemand(Sequence[Links]):
    """A sequence whose elements are made when they are asked for."""

    def __init__(self, length: int, make: Callable[[int], Links]) -> None:
        self._length = length
        self._make = make

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, at: int) -> Links: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Links]: ...
    def __getitem__(self, at: int | slice) -> Links | Sequence[Links]:
        if isinstance(at, slice):
            return [self._make(call) for call in range(self._length)[at]]
        return self._make(range(self._length)[at])
