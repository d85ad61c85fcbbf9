"""What is measured, as rows of a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.timing import Timing, median_timing


@dataclass(frozen=True)
class Figure:
    """One measured number.

    Attributes:
        what: what was measured.
        measured: the number, with its unit.
        target: what it should be; empty where nothing is asked of it.
        holds: whether it is; None where nothing is asked.
    """

    what: str
    measured: str
    target: str = ""
    holds: bool | None = None


def at_most(what: str, value: float, limit: float, unit: str, digits: int = 2) -> Figure:
    """Return a figure that holds up to and with ``limit``.

    >>> at_most("planning", 0.414, 1, "s")
    Figure(what='planning', measured='0.41 s', target='<= 1 s', holds=True)
    """
    return Figure(what, f"{value:.{digits}f} {unit}", f"<= {limit:g} {unit}", value <= limit)


def at_least(what: str, value: float, limit: float, digits: int = 3) -> Figure:
    """Return a figure that holds down to and with ``limit``.

    >>> at_least("reached of the bound", 0.991, 0.98)
    Figure(what='reached of the bound', measured='0.991', target='>= 0.98', holds=True)
    """
    return Figure(what, f"{value:.{digits}f}", f">= {limit:g}", value >= limit)


def say_number(value: float, digits: int = 3) -> str:
    """Return a number with so many digits, all of those before the point, and no exponent.

    >>> say_number(1234.5), say_number(0.01234), say_number(9.876, 2)
    ('1,234', '0.0123', '9.9')
    """
    before = math.floor(math.log10(abs(value))) + 1 if value else 1
    return f"{value:,.{max(0, digits - before)}f}"


def say_seconds(value: float, digits: int = 3) -> str:
    """Return a time in the unit that suits it.

    >>> say_seconds(0.0123), say_seconds(0.000045), say_seconds(12.3)
    ('12.3 ms', '45.0 µs', '12.3 s')
    """
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if value * factor >= 1:
            return f"{say_number(value * factor, digits)} {unit}"
    return f"{say_number(value * 1e6, digits)} µs"


def say_step(what: str, timings: Sequence[Timing]) -> Figure:
    """Return the medians of a step's time by the clock and of the processor."""
    step = median_timing(timings)
    return Figure(what, f"{say_number(step.wall * 1e3)} ms a step, {say_number(step.cpu * 1e3, 2)} ms CPU")


def say_reached(what: str, bound: float, wall: float, limit: float) -> Figure:
    """Return how much a step of ``wall`` seconds reaches of what cannot be beaten."""
    return at_least(f"{what} reaches of the bound of {bound * 1e3:.0f} ms", bound / wall, limit)


@dataclass(frozen=True)
class Section:
    """The figures of one benchmark.

    Attributes:
        title: what they are about.
        how: how they were measured, in a sentence or two.
        figures: the figures.
    """

    title: str
    how: str
    figures: Sequence[Figure]

    def to_markdown(self, machine: str) -> str:
        """Return a heading, the sentence, where and when it was measured, and one table row for each figure."""
        lines = [f"### {self.title}", "", self.how, "", f"{machine}.", ""]
        lines += ["| what | measured | target | |", "|---|---|---|---|"]
        for figure in self.figures:
            mark = {True: "holds", False: "**missed**", None: ""}[figure.holds]
            lines.append(f"| {figure.what} | {figure.measured} | {figure.target} | {mark} |")
        return "\n".join(lines)
