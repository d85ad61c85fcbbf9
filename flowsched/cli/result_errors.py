"""Why outputs are not saved."""

from __future__ import annotations

import errno
from pathlib import Path

from flowsched.errors import FlowschedError

_MEND = "Give a path in a folder that exists and can be written to"


class ResultError(FlowschedError):
    """Outputs that a file of this kind cannot hold.

    Args:
        output: name of the output.
        place: where in it, e.g. ``row 3`` or ``column 'score'``; empty for all of it.
        problem: why.
        mend: how to keep it anyway.
    """

    code = "result"

    def __init__(self, output: str, place: str, problem: str, mend: str) -> None:
        self.arguments = (output, place, problem, mend)
        where = f"output {output!r}" + (f", {place}" if place else "")
        super().__init__(f"{where}: {problem}. {mend}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self.arguments


class ResultFileError(FlowschedError):
    """A file for outputs that cannot be written.

    Args:
        file: the file.
        reason: what the operating system says.
        mend: how to put it right.
    """

    code = "result-file"

    def __init__(self, file: Path, reason: str, mend: str) -> None:
        self.arguments = (file, reason, mend)
        super().__init__(f"{file} cannot be written: {reason}. {mend}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self.arguments


def unwritable(file: Path, error: OSError) -> ResultFileError:
    """Return the error for what the operating system said."""
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    mend = "Make room, or give a path elsewhere" if is_full else _MEND
    return ResultFileError(file, (error.strerror or str(error)).lower(), mend)
