"""What the exit code of a command says."""

from __future__ import annotations

from typing import Final

from flowsched.errors import BackendError, FlowschedError, RunError

OK: Final = 0
RUN_FAILED: Final = 1
USAGE: Final = 2
REFUSED: Final = 3
NO_BACKEND: Final = 4
NOT_EXACT: Final = 5
INTERRUPTED: Final = 130

MEANINGS: Final = {
    OK: "done",
    RUN_FAILED: "the run failed while a replica was built or a worker worked",
    USAGE: "the command line is wrong",
    REFUSED: "the graph, plan, models, inputs or a file are refused, or a file cannot be written",
    NO_BACKEND: "the backend does not work here, or cannot hold the replicas",
    NOT_EXACT: "the loader that was checked repeats or misses samples",
    INTERRUPTED: "interrupted",
}

_LINES: Final = [f"  {code:>3}  {meaning}" for code, meaning in MEANINGS.items()]
EPILOG: Final = "\n".join(["\b", "Exit codes:", *_LINES])
"""The exit codes for ``--help``; the escape keeps their lines apart."""


def exit_code_of(error: FlowschedError) -> int:
    """Return the exit code for an error."""
    if isinstance(error, RunError):
        return RUN_FAILED
    return NO_BACKEND if isinstance(error, BackendError) else REFUSED
