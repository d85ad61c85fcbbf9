"""Why a plan file cannot be saved or loaded, in sentences with the reason and the mend."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from flowsched.errors import PlanFileError


def other_suffix(file: Path, known: Sequence[str]) -> PlanFileError:
    """Its name ends in none of the known suffixes."""
    suffix = f"the suffix {file.suffix!r}" if file.suffix else "no suffix"
    mend = f"Name it {' or '.join(f'{file.stem}{suffix}' for suffix in known)}"
    return PlanFileError(file, f"it has {suffix}, which says no format", mend)


def unwritable(file: Path, error: OSError | ValueError) -> PlanFileError:
    """The operating system does not let it be written."""
    reason = f"it cannot be written: {_say_cause(error)}"
    return PlanFileError(file, reason, "Give a path in a folder that exists and can be written to")


def unreadable(file: Path, error: OSError | ValueError) -> PlanFileError:
    """The operating system does not let it be read."""
    reason = f"it cannot be read: {_say_cause(error)}"
    return PlanFileError(file, reason, "Give the path of a file that plan.save(path) wrote")


def _say_cause(error: OSError | ValueError) -> str:
    return str(getattr(error, "strerror", None) or error)


def damaged(file: Path, reason: str) -> PlanFileError:
    """It does not hold what a plan file holds."""
    return PlanFileError(file, reason, "It is damaged: compile the plan and save it again")


def no_plan(file: Path, found: object) -> PlanFileError:
    """It is a file of another kind."""
    reason = "it does not say that it is a plan" if found is None else f"it says that it is {found!r}"
    return PlanFileError(file, reason, "Give a file that plan.save(path) wrote")


def other_version(file: Path, found: object, known: int) -> PlanFileError:
    """It is of another format version."""
    reason = f"it is of format version {found!r}, and this flowsched reads version {known}"
    return PlanFileError(file, reason, "Compile the plan and save it again with this flowsched")


def other_graph(file: Path, changes: Sequence[str]) -> PlanFileError:
    """It was made for another graph."""
    reason = "\n  ".join(["it was made for another graph:", *changes])
    return PlanFileError(
        file, reason, "Compile a plan for this graph, or load the file with the graph it was made for"
    )


def other_hash(file: Path, said: str, found: str) -> PlanFileError:
    """What it holds is not what was saved."""
    return damaged(file, f"what it holds has the hash {found[:12]}, and it says {said[:12]}")
