"""Which rows of each call others read, as distinct ranges."""

from __future__ import annotations

from collections.abc import Iterator

from flowsched.backend import Program

Range = tuple[int, int]
"""Half-open rows, counted from the first that a call makes."""
Fragment = tuple[int, int, int]
"""Producer, as in :class:`flowsched.backend.Read`, and rows."""


def find_ranges(program: Program) -> dict[int, list[Range]]:
    """Return, by call, the distinct ranges of its rows that others read, in order."""
    found: dict[int, dict[Range, None]] = {}
    for producer, start, stop in all_fragments(program):
        if producer >= 0:
            found.setdefault(producer, {})[start, stop] = None
    return {call: sorted(ranges) for call, ranges in found.items()}


def all_fragments(program: Program) -> Iterator[Fragment]:
    """Yield all fragments of a plan."""
    for links in program.links:
        for read in links.reads:
            yield from read.fragments
