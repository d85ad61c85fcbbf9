"""Plan files that cannot be saved or loaded, in sentences with the reason and the mend."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from flowsched.errors import PlanFileError


class RefusedPlanFileError(PlanFileError):
    """A plan file that is refused.

    Args:
        file: the file.
        reason: why.
        mend: how to put it right.
    """

    def __init__(self, file: Path, reason: str, mend: str) -> None:
        self.file = file
        self.reason = reason
        self.mend = mend
        stop = "\n" if "\n" in reason else ". "
        super().__init__(f"plan file {str(file)!r}: {reason}{stop}{mend}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.file, self.reason, self.mend)

    @classmethod
    def other_suffix(cls, file: Path, known: Sequence[str]) -> RefusedPlanFileError:
        """Its name ends in none of the known suffixes."""
        suffix = f"the suffix {file.suffix!r}" if file.suffix else "no suffix"
        mend = f"Name it {' or '.join(f'{file.stem}{suffix}' for suffix in known)}"
        return cls(file, f"it has {suffix}, which says no format", mend)

    @classmethod
    def unwritable(cls, file: Path, error: OSError) -> RefusedPlanFileError:
        """The operating system does not let it be written."""
        reason = f"it cannot be written: {error.strerror or error}"
        return cls(file, reason, "Give a path in a folder that exists and can be written to")

    @classmethod
    def unreadable(cls, file: Path, error: OSError) -> RefusedPlanFileError:
        """The operating system does not let it be read."""
        reason = f"it cannot be read: {error.strerror or error}"
        return cls(file, reason, "Give the path of a file that plan.save(path) wrote")

    @classmethod
    def damaged(cls, file: Path, reason: str) -> RefusedPlanFileError:
        """It does not hold what a plan file holds."""
        return cls(file, reason, "It is damaged: compile the plan and save it again")

    @classmethod
    def no_plan(cls, file: Path, found: object) -> RefusedPlanFileError:
        """It is a file of another kind."""
        reason = "it does not say that it is a plan" if found is None else f"it says that it is {found!r}"
        return cls(file, reason, "Give a file that plan.save(path) wrote")

    @classmethod
    def other_version(cls, file: Path, found: object, known: int) -> RefusedPlanFileError:
        """It is of another format version."""
        reason = f"it is of format version {found!r}, and this flowsched reads version {known}"
        return cls(file, reason, "Compile the plan and save it again with this flowsched")

    @classmethod
    def other_graph(cls, file: Path, changes: Sequence[str]) -> RefusedPlanFileError:
        """It was made for another graph."""
        reason = "\n  ".join(["it was made for another graph:", *changes])
        return cls(
            file, reason, "Compile a plan for this graph, or load the file with the graph it was made for"
        )

    @classmethod
    def other_hash(cls, file: Path, said: str, found: str) -> RefusedPlanFileError:
        """What it holds is not what was saved."""
        return cls.damaged(file, f"what it holds has the hash {found[:12]}, and it says {said[:12]}")
