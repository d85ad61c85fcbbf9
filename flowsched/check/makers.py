"""What every producer makes, and when, looked up by the numbers that fragments hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from flowsched.check.block import Block
from flowsched.plan import Fragment, Plan
from flowsched.plan.table import Int64


@dataclass(frozen=True, eq=False)
class Makers:
    """Rows and places of all calls and sources.

    The columns hold the calls and, after them, the sources from the last to the first, so that a producer's
    number is its index: source ``s`` has the number ``-1 - s``.

    Attributes:
        sources: names of the sources.
        samples: rows of each source.
        blocks: the calls of each node, by its name, as declared.
        start, stop: (calls + sources,) the rows that each makes.
        sequence: (calls + sources,) its place in the order of all calls; -1 for a source, which is there first.
    """

    sources: tuple[str, ...]
    samples: int
    blocks: Mapping[str, Block]
    start: Int64
    stop: Int64
    sequence: Int64

    @cached_property
    def source_places(self) -> dict[str, int]:
        """Which source has each name."""
        return {name: place for place, name in enumerate(self.sources)}

    def numbers_of(self, name: str) -> tuple[int, int]:
        """Return the half-open range of the numbers of a node's calls, or of a source."""
        if name in self.blocks:
            block = self.blocks[name]
            return block.first, block.first + len(block)
        number = -1 - self.source_places[name]
        return number, number + 1

    def exist(self, producer: Int64) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return which of these numbers are those of a call or a source."""
        return (producer >= -len(self.sources)) & (producer < len(self.start) - len(self.sources))

    def say(self, producer: int, start: int, stop: int) -> str:
        """Return rows of a producer as a fragment in call notation; by its number if there is none."""
        return str(Fragment(self._name(producer), start, stop))

    def _name(self, producer: int) -> str:
        if producer < 0:
            known = -producer <= len(self.sources)
            return self.sources[-1 - producer] if known else f"producer {producer}"
        for block in self.blocks.values():
            if producer < block.first + len(block):
                return block.say_call(producer - block.first).partition("[")[0]
        return f"producer {producer}"


def list_makers(plan: Plan, blocks: Sequence[Block]) -> Makers:
    """Gather what all calls and sources make."""
    calls, sources = plan.table.calls, plan.graph.sources
    start, stop, sequence = (np.empty(calls + len(sources), np.int64) for _ in range(3))
    for block in blocks:
        own = slice(block.first, block.first + len(block))
        start[own], stop[own] = block.made_rows()
        sequence[own] = block.sequence
    start[calls:], stop[calls:], sequence[calls:] = 0, plan.samples, -1
    by_name = {block.node.name: block for block in blocks}
    return Makers(sources, plan.samples, by_name, start, stop, sequence)
