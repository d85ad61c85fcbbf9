"""Some of many: the first calls and the last, each in one line that never grows too long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flowsched.plan import Plan
from flowsched.plan.notation import join_fragments

WIDTH = 110
_MOST_FRAGMENTS = 8


@dataclass(frozen=True)
class Pick:
    """Places picked from a sequence: its beginning and its last.

    Attributes:
        first: places at the beginning.
        left_out: how many are passed over after ``first``.
        last: the last place, if it is not among ``first``.
    """

    first: range
    left_out: int
    last: range

    @property
    def places(self) -> tuple[int, ...]:
        """All places that are shown."""
        return (*self.first, *self.last)


def pick(length: int, limit: int | None) -> Pick:
    """Pick about ``limit`` (2 or more) of ``length`` places; None picks all.

    A single place is never left out: to say so would take its room.

    >>> pick(10, 4)
    Pick(first=range(0, 3), left_out=6, last=range(9, 10))
    """
    if limit is None or length <= limit + 1:
        return Pick(range(length), 0, range(0))
    return Pick(range(limit - 1), length - limit, range(length - 1, length))


def list_calls(
    plan: Plan, numbers: Sequence[int], limit: int | None, width: int, more: str = "", indent: str = "  "
) -> list[str]:
    """Return calls, one a line with the arrows below each other; the middle is left out of many.

    Args:
        plan: the plan.
        numbers: numbers of the calls.
        limit: the most calls that are shown; None shows all.
        width: the longest line.
        more: where the calls that are left out can be seen.
        indent: what every line begins with.
    """
    picked = pick(len(numbers), limit)
    lines = short_calls(plan, [numbers[at] for at in picked.places], width - len(indent))
    if picked.left_out:
        lines.insert(len(picked.first), f"... {picked.left_out:,} more{f': {more}' if more else ''}")
    return [indent + line for line in lines]


def short_calls(plan: Plan, numbers: Sequence[int], width: int) -> list[str]:
    """Return calls in call notation with the arrows below each other, none longer than ``width``.

    Fragments that have no room are counted. Only those that are shown are looked at, however many there are.
    """
    made = [say_made(plan, number) for number in numbers]
    widest = max(map(len, made), default=0)
    room = width - widest - len(" <- ")
    return [
        f"{text.ljust(widest)} <- {_say_read(plan, number, room)}"
        for text, number in zip(made, numbers, strict=True)
    ]


def say_made(plan: Plan, number: int) -> str:
    """Return a call with the rows that it makes, as call notation begins."""
    table, (start, stop) = plan.table, plan.made_rows(number)
    node = plan.graph.nodes[table.node[number]].name
    return f"{node}.{table.replica[number]}.{table.position[number]}[{start}:{stop}]"


def _say_read(plan: Plan, number: int, room: int) -> str:
    most = _MOST_FRAGMENTS
    inputs = say_inputs(plan, number, most)
    while len(", ".join(inputs)) > room and most > 1:
        most //= 2
        inputs = say_inputs(plan, number, most)
    text, left_out = ", ".join(inputs), 0
    while len(text) > room and len(inputs) - left_out > 1:
        left_out += 1
        text = ", ".join([*inputs[:-left_out], f"({left_out} more input{'s' if left_out > 1 else ''})"])
    return text


def say_inputs(plan: Plan, number: int, most: int = _MOST_FRAGMENTS) -> list[str]:
    """Return what a call reads from each input, with at most ``most`` of its fragments."""
    table, index = plan.table, int(plan.table.node[number])
    node = plan.graph.nodes[index]
    first = int(plan.feed_offsets[index] + (number - plan.call_offsets[index]) * len(node.inputs))
    inputs = []
    for feed, times in enumerate(plan.rows[node.name].times, first):
        fragments = _say_fragments(plan, int(table.feed[feed]), int(table.feed[feed + 1]), most)
        inputs.append(join_fragments(fragments, times))
    return inputs


def _say_fragments(plan: Plan, start: int, stop: int, most: int) -> list[str]:
    if most == 1 and stop - start > 1:
        return [str(plan.fragment(start)), f"({stop - start - 1:,} more)"]
    picked = pick(stop - start, most)
    parts = [str(plan.fragment(start + at)) for at in picked.places]
    if picked.left_out:
        parts.insert(len(picked.first), f"({picked.left_out:,} more)")
    return parts
