"""Programs with something changed, for tests of their checker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from flowsched import Plan
from flowsched.programs import ActionKind, Messages, Programs
from flowsched.programs.check import find_violations

RECV, RUN, SEND = ActionKind.RECV, ActionKind.RUN, ActionKind.SEND
Row = tuple[int, int]
"""Kind and number of an action."""


def rows(programs: Programs) -> list[list[Row]]:
    """Return the actions of each rank as kinds and numbers."""
    return [list(zip(own.kinds.tolist(), own.numbers.tolist(), strict=True)) for own in programs]


def with_rows(programs: Programs, changed: Sequence[Sequence[Row]]) -> Programs:
    """Return the programs with these actions instead."""
    flat = [row for own in changed for row in own]
    return replace(
        programs,
        kinds=np.array([kind for kind, _ in flat], np.int8),
        numbers=np.array([number for _, number in flat], np.int64),
        offsets=np.cumsum([0, *map(len, changed)]),
    )


def with_messages(programs: Programs, **columns: Any) -> Programs:
    """Return the programs with columns of their messages replaced."""
    messages: Messages = replace(programs.messages, **columns)
    return replace(programs, messages=messages)


def without(programs: Programs, kind: ActionKind, number: int) -> Programs:
    """Return the programs without one action."""
    return with_rows(programs, [[row for row in own if row != (kind, number)] for own in rows(programs)])


def twice(programs: Programs, kind: ActionKind, number: int) -> Programs:
    """Return the programs with one action repeated at once."""
    action = (int(kind), number)
    changed = [
        [each for row in own for each in ([row, row] if row == action else [row])] for own in rows(programs)
    ]
    return with_rows(programs, changed)


def swapped(programs: Programs, rank: int, first: int, second: int) -> Programs:
    """Return the programs with two actions of a rank, given by their places, in each other's place."""
    changed = rows(programs)
    own = changed[rank]
    own[first], own[second] = own[second], own[first]
    return with_rows(programs, changed)


def places(programs: Programs) -> Iterator[tuple[int, int, int, int]]:
    """Yield rank, place, kind and number of every action."""
    for rank, own in enumerate(rows(programs)):
        for place, (kind, number) in enumerate(own):
            yield rank, place, kind, number


def codes(programs: Programs, plan: Plan, **options: Any) -> set[str]:
    """Return the codes of all that is wrong."""
    return {problem.code for problem in find_violations(programs, plan, **options)}


def written(programs: Programs, *texts: str) -> Programs:
    """Return the programs whose ranks do what the texts say, one of the programs' own actions a line."""
    known = {
        (rank, str(programs.action(kind, number))): (kind, number)
        for rank, _, kind, number in places(programs)
    }
    changed = [
        [known[rank, line.strip()] for line in text.splitlines() if line.strip()]
        for rank, text in enumerate(texts)
    ]
    return with_rows(programs, changed)
