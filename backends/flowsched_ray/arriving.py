"""Rows that have arrived from another process, as batches; or, where they cannot be read here, whose they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from flowsched.backend import Links, Step
from flowsched.batch import Batch
from flowsched.errors import OutputError, say_exception

_HERE = "what it reads cannot be brought to its process"
_HOME = "its output cannot be brought home"


def arrive(step: Step, links: Links, crossed: Iterable[Any], undo: Callable[[Any], Batch]) -> list[Batch]:
    """Return the fragments of a call, of which ``undo`` makes batches, in the process that runs it.

    Raises:
        OutputError: one of them cannot be read; what its own unpickling raised is the cause.
    """
    try:
        return [undo(rows) for rows in crossed]
    except Exception as error:
        raise _explain(step, links, _HERE, error) from error


def arrive_home(step: Step, links: Links, crossed: Any, undo: Callable[[Any], Batch]) -> Batch:
    """Return the output of a call in the driver.

    Raises:
        OutputError: likewise.
    """
    try:
        return undo(crossed)
    except Exception as error:
        raise _explain(step, links, _HOME, error) from error


def _explain(step: Step, links: Links, problem: str, error: Exception) -> OutputError:
    said = f"{problem}: {say_exception(error)}"
    return OutputError(said, "The cause stands above", **step.place(links.call))
