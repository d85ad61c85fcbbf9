"""Errors on the command line: sentences, or JSON, and tracebacks of the user's own code only."""

from __future__ import annotations

import os
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any

from flowsched.cli.output import print_aside
from flowsched.errors import AddressError, FlowschedError, ProblemsError, RunError

_NOT_THE_USERS = ("<frozen importlib", str(Path(__file__).parents[1]) + os.sep)


def print_error(error: FlowschedError) -> None:
    """Print an error to stderr; where the user's own code failed, its traceback comes first."""
    shown = user_traceback(error)
    if shown:
        print_aside(shown)
    print_aside(f"error: {_with_notes(error)}")


def error_to_dict(error: FlowschedError) -> dict[str, Any]:
    """Return an error as plain data: ``code``, ``message``, ``problems``.

    Each problem has ``code``, ``place``, ``message`` and ``mend``. Where a run failed there are ``node``,
    ``replica``, ``call`` and ``samples``; where the user's own code failed there is its ``traceback``.
    """
    found: dict[str, Any] = {"code": error.code, "message": _with_notes(error), "problems": []}
    if isinstance(error, ProblemsError):
        keys = ("code", "place", "message", "mend")
        found["problems"] = [{key: getattr(problem, key) for key in keys} for problem in error.problems]
    if isinstance(error, RunError):
        samples = None if error.samples is None else list(error.samples)
        found |= {"node": error.node, "replica": error.replica, "call": error.call, "samples": samples}
    shown = user_traceback(error)
    return {**found, "traceback": shown} if shown else found


def user_traceback(error: FlowschedError) -> str:
    """Return the traceback of the user's exception behind an error, without our frames; empty if there is none."""
    cause = error.__cause__
    if cause is None or not isinstance(error, RunError | AddressError):
        return ""
    own = _first_own(cause.__traceback__)
    if own is None and isinstance(cause, FlowschedError):
        return ""  # what a worker returned was refused, and it raised nothing
    lines = traceback.format_exception(type(cause), cause, own or cause.__traceback__)
    return "".join(lines).rstrip()


def _first_own(frames: TracebackType | None) -> TracebackType | None:
    """Return the traceback from the first frame on that belongs neither to flowsched nor to a backend."""
    while frames is not None:
        code = frames.tb_frame.f_code
        package = str(frames.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        ours = package.startswith("flowsched_") and not package.startswith("flowsched_job_")
        if not (ours or code.co_filename.startswith(_NOT_THE_USERS)):
            return frames
        frames = frames.tb_next
    return None


def _with_notes(error: FlowschedError) -> str:
    return "\n".join([str(error), *(f"  {note}" for note in getattr(error, "__notes__", ()))])
