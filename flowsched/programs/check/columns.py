"""Whether the columns of programs can be read at all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flowsched.errors import Problem
from flowsched.plan import Plan
from flowsched.programs.programs import ActionKind, Programs

_MEND = "Lower the plan again: plan.programs()"


def find_column_problems(programs: Programs, plan: Plan) -> Iterator[Problem]:
    """Yield what keeps actions and messages from being told apart."""
    lengths = list(_find_lengths(programs))
    yield from lengths or [*_find_beyond_actions(programs, plan), *_find_beyond_messages(programs, plan)]


def _find_lengths(programs: Programs) -> Iterator[Problem]:
    messages, processes = programs.messages, programs.placement.processes
    for name, column, length in (
        ("numbers", programs.numbers, len(programs.kinds)),
        ("offsets", programs.offsets, processes + 1),
        ("receiver", messages.receiver, len(messages)),
        ("producer", messages.producer, len(messages)),
        ("start", messages.start, len(messages)),
        ("stop", messages.stop, len(messages)),
        ("is_output", messages.is_output, len(messages)),
        ("reader_offsets", messages.reader_offsets, len(messages) + 1),
    ):
        if len(column) != length:
            yield _problem(name, f"it has {len(column)} entries, not {length}")
    for name, column, end in (
        ("offsets", programs.offsets, len(programs.kinds)),
        ("reader_offsets", messages.reader_offsets, len(messages.reader)),
    ):
        if len(column) and (column[0] != 0 or column[-1] != end or (np.diff(column) < 0).any()):
            yield _problem(name, f"it does not rise from 0 to {end}")


def _find_beyond_actions(programs: Programs, plan: Plan) -> Iterator[Problem]:
    kinds, numbers = programs.kinds, programs.numbers
    yield from _find_beyond("kinds", kinds, 0, len(ActionKind))
    runs = kinds == ActionKind.RUN
    yield from _find_beyond("numbers of RUN", numbers[runs], 0, plan.table.calls)
    yield from _find_beyond("numbers of RECV and SEND", numbers[~runs], 0, len(programs.messages))


def _find_beyond_messages(programs: Programs, plan: Plan) -> Iterator[Problem]:
    messages, processes = programs.messages, programs.placement.processes
    yield from _find_beyond("sender", messages.sender, 0, processes)
    yield from _find_beyond("receiver", messages.receiver, 0, processes)
    yield from _find_beyond("producer", messages.producer, -len(plan.graph.sources), plan.table.calls)
    yield from _find_beyond("reader", messages.reader, 0, plan.table.calls)


def _find_beyond(
    name: str, column: np.ndarray[tuple[int, ...], np.dtype[np.signedinteger]], start: int, stop: int
) -> Iterator[Problem]:
    beyond = (column < start) | (column >= stop)
    if beyond.any():
        at = int(beyond.argmax())
        yield _problem(name, f"entry {at} is {column[at]}, not from {start} to {stop - 1}")


def _problem(name: str, message: str) -> Problem:
    return Problem("columns", f"column {name!r}", message, _MEND)
