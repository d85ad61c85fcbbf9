"""What is raised for rows that cannot be brought to another process: whose they are, and which column it is."""

from __future__ import annotations

from flowsched.backend import Step
from flowsched.batch import Batch
from flowsched.batch.columns import leaves
from flowsched.batch.errors import say_column
from flowsched.errors import InputError, OutputError, Problem, say_exception
from flowsched_torch.messages import UnsendableError
from flowsched_torch.wire import encode

_MEND = "Give what can be pickled: data, not open files, locks or live models"


def unsendable_output(step: Step, call: int, error: UnsendableError, batch: Batch) -> OutputError:
    """Return what is raised for the output of a call that cannot be pickled."""
    cause = error.__cause__ or error
    problem = (
        f"its output cannot be brought to other processes: {_find_column(batch)}: {say_exception(cause)}"
    )
    return OutputError(problem, _MEND, **step.place(call))


def unsendable_input(step: Step, source: int, error: UnsendableError, batch: Batch) -> InputError:
    """Return what is raised for an input that cannot be pickled."""
    graph, cause = step.plan.graph, error.__cause__ or error
    message = f"it cannot be brought to other processes: {_find_column(batch)}: {say_exception(cause)}"
    problem = Problem("bad-input", f"source {graph.sources[source]!r}", message, _MEND)
    return InputError(f"input of graph {graph.name!r}", [problem])


def unreadable(step: Step, call: int, error: UnsendableError, what: str) -> OutputError:
    """Return what is raised for rows that have arrived and cannot be read there."""
    problem = f"{what}: {say_exception(error.__cause__ or error)}"
    return OutputError(problem, "The cause stands above", **step.place(call))


def _find_column(batch: Batch) -> str:
    """Return in words the first column that cannot be sent."""
    for path, _, value in leaves(batch):
        try:
            encode(value)
        except Exception:  # noqa: BLE001 - it is told already
            return say_column(path)
    return "some column"
