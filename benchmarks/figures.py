"""What is measured, as rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


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

    def to_markdown(self) -> str:
        """Return a heading, the sentence and one table row for each figure."""
        lines = [f"### {self.title}", "", self.how, ""]
        lines += ["| what | measured | target | |", "|---|---|---|---|"]
        for figure in self.figures:
            mark = {True: "holds", False: "**missed**", None: ""}[figure.holds]
            lines.append(f"| {figure.what} | {figure.measured} | {figure.target} | {mark} |")
        return "\n".join(lines)
