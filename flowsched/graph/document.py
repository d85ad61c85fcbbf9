"""A graph as plain data, with the place at which each part of it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flowsched.errors import GraphError, Problem

Where = tuple[str | int, ...]

DEEPEST = 32
"""Levels of nesting that a file may have; a graph needs 5."""

MOST_VALUES = 200_000
"""Values that a file may hold once its aliases are followed."""


@dataclass(frozen=True)
class Mark:
    """A place in a text.

    Attributes:
        source: the file, or whatever else holds the text.
        line, column: counted from 1; 0 where the source has none.
        written: what stands there, where that does not show in the value it is read as.
    """

    source: str
    line: int = 0
    column: int = 0
    written: str | None = None

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.source


@dataclass(frozen=True)
class Document:
    """Plain data and where each part of it is written.

    Attributes:
        subject: what it is called in the heading of an error.
        data: the plain data.
        root: the place of the whole.
        values: the place of each value, by the keys and indices that lead to it.
        keys: the place of each key, likewise.
        problems: what is wrong with it before anyone asks what it means, such as a key that is written twice.
    """

    subject: str
    data: Any
    root: Mark
    values: Mapping[Where, Mark] = field(default_factory=dict)
    keys: Mapping[Where, Mark] = field(default_factory=dict)
    problems: tuple[tuple[Mark, Problem], ...] = ()

    def mark(self, where: Where) -> Mark:
        """Return the place of the value at ``where``, or of the innermost value that would hold it."""
        for length in range(len(where), -1, -1):
            if where[:length] in self.values:
                return self.values[where[:length]]
        return self.root

    def value(self, where: Where) -> Any:
        """Return the value at ``where``; None where there is none."""
        found = self.data
        for part in where:
            try:
                found = found[part]
            except (LookupError, TypeError):
                return None
        return found


def syntax_error(mark: Mark, kind: str, message: str, mend: str | None = None) -> GraphError:
    """Return the error for text that is not of the ``kind`` (YAML, JSON) that the file's suffix says."""
    return _file_error(Problem("syntax", str(mark), message, mend or f"Write the graph as {kind}"), mark)


def nesting_error(mark: Mark) -> GraphError:
    """Return the error for values that are nested deeper than any graph."""
    message = f"values are nested more than {DEEPEST} levels deep"
    return _file_error(Problem("too-deep", str(mark), message, "A graph needs 5 levels"), mark)


def size_error(mark: Mark) -> GraphError:
    """Return the error for a file that holds too much."""
    message = f"the file holds more than {MOST_VALUES} values, aliases followed"
    return _file_error(Problem("too-large", str(mark), message, "Declare so large a graph in Python"), mark)


def file_subject(path: str) -> str:
    """Return what a graph file is called in the heading of an error."""
    return f"graph file {path!r}"


def duplicate_key(mark: Mark, key: str, first: Mark) -> tuple[Mark, Problem]:
    """Return the problem of a key that is written twice, with its place."""
    message = f"key {key!r} is written twice, first at {first}"
    return mark, Problem("duplicate-key", str(mark), message, "Keep one of them")


def _file_error(problem: Problem, mark: Mark) -> GraphError:
    return GraphError(file_subject(mark.source), [problem])
