"""Every exception that flowsched raises on purpose, in one tree.

None derives from ``ValueError``: pydantic would swallow those raised inside a validator.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

_LONGEST = 2_000  # characters of another exception's text that are repeated


class FlowschedError(Exception):
    """Base of all errors raised by flowsched; ``code`` is stable and can be matched on."""

    code: str = "flowsched"


@dataclass(frozen=True)
class Problem:
    """One thing wrong with what the user declared.

    Attributes:
        code: stable kebab-case name of the kind of problem.
        place: where it is, e.g. ``node 'reward'`` or ``ppo.yaml:12:5``.
        message: what is wrong, with the numbers.
        mend: how to put it right.
        where: the same place as keys and indices into ``Graph.to_dict()``, e.g. ``("nodes", 2, "inputs", 0)``,
            for readers that know where that is written; empty where there is no such place.
    """

    code: str
    place: str
    message: str
    mend: str
    where: tuple[str | int, ...] = field(default=(), repr=False, compare=False)

    def __str__(self) -> str:
        return f"[{self.code}] {self.place}: {self.message}. {self.mend}"


class ProblemsError(FlowschedError):
    """Several problems found in one look, reported together.

    Args:
        subject: what was looked at, e.g. ``graph 'ppo'``.
        problems: at least one.
    """

    def __init__(self, subject: str, problems: Iterable[Problem]) -> None:
        self.subject = subject
        self.problems = tuple(problems)
        count = len(self.problems)
        heading = f"{subject} has {count} problem{'' if count == 1 else 's'}:"
        super().__init__("\n".join([heading, *(f"  {problem}" for problem in self.problems)]))

    def __reduce__(self) -> tuple[type[ProblemsError], tuple[str, tuple[Problem, ...]]]:
        return type(self), (self.subject, self.problems)


class GraphError(ProblemsError):
    """A graph that cannot be: unknown names, cycles, sizes below 1, and the like."""

    code = "graph"


class PlanError(ProblemsError):
    """A graph that cannot be planned for this number of samples."""

    code = "plan"


class BindingError(ProblemsError):
    """Models that do not fit the graph they are bound to."""

    code = "binding"


class InputError(ProblemsError):
    """Step inputs that do not fit the graph or the plan."""

    code = "input"


class PlanFileError(FlowschedError):
    """A plan file that is refused: damaged, of another format version, or made for another graph.

    Args:
        file: the file.
        reason: why.
        mend: how to put it right.
    """

    code = "plan-file"

    def __init__(self, file: Path, reason: str, mend: str) -> None:
        self.file = file
        self.reason = reason
        self.mend = mend
        stop = "\n" if "\n" in reason else ". "
        super().__init__(f"plan file {str(file)!r}: {reason}{stop}{mend}")

    def __reduce__(self) -> tuple[type[PlanFileError], tuple[Path, str, str]]:
        return type(self), (self.file, self.reason, self.mend)


class CheckError(ProblemsError):
    """A plan that breaks its promises; each problem names the promise."""

    code = "check"


class AddressError(FlowschedError):
    """An address (``module:attribute`` or a path) that leads to no graph."""

    code = "address"


class BackendError(FlowschedError):
    """A backend that is unknown, cannot load, or does not support what was asked of it."""

    code = "backend"


class CapacityError(BackendError):
    """The machine cannot hold the replicas that were asked for."""

    code = "capacity"


class SessionError(FlowschedError):
    """A session used after it was closed or after a step of it failed."""

    code = "session"


class RunError(FlowschedError):
    """A step that failed while it ran; ``__cause__`` is the user's own exception where there is one.

    Args:
        message: what failed and how to mend it.
        node: name of the node.
        replica: index of the replica, 0-based.
        call: the call in call notation; None when the replica was still being built.
        samples: half-open range of sample ids that the call reads; None when it was being built.
    """

    code = "run"

    def __init__(
        self,
        message: str,
        *,
        node: str,
        replica: int,
        call: str | None = None,
        samples: tuple[int, int] | None = None,
    ) -> None:
        self.message = message
        self.node = node
        self.replica = replica
        self.call = call
        self.samples = samples
        super().__init__(message)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_run_error, (
            type(self),
            self.message,
            self.node,
            self.replica,
            self.call,
            self.samples,
        )


def _rebuild_run_error(
    kind: type[RunError],
    message: str,
    node: str,
    replica: int,
    call: str | None,
    samples: tuple[int, int] | None,
) -> RunError:
    error = kind.__new__(kind)
    RunError.__init__(error, message, node=node, replica=replica, call=call, samples=samples)
    return error


class BuildError(RunError):
    """A replica whose constructor raised."""

    code = "build"

    def __init__(self, *, node: str, replica: int, replicas: int, cause: BaseException) -> None:
        super().__init__(
            f"node {node!r}: building replica {replica} of {replicas} failed with {say_exception(cause)}",
            node=node,
            replica=replica,
        )


class WorkerError(RunError):
    """A worker that raised; the user's exception is its ``__cause__``."""

    code = "worker"

    def __init__(
        self,
        *,
        node: str,
        replica: int,
        call: str,
        samples: tuple[int, int],
        cause: BaseException,
        mend: str = "",
    ) -> None:
        super().__init__(
            f"node {node!r}, replica {replica}, call {call}, {say_samples(samples)}: "
            f"the worker raised {say_exception(cause)}{'. ' if mend else ''}{mend}",
            node=node,
            replica=replica,
            call=call,
            samples=samples,
        )


class OutputError(RunError):
    """A worker that returned something that cannot be routed on: wrong rows, columns or keys."""

    code = "output"

    def __init__(
        self, problem: str, mend: str, *, node: str, replica: int, call: str, samples: tuple[int, int]
    ) -> None:
        super().__init__(
            f"node {node!r}, replica {replica}, call {call}, {say_samples(samples)}: {problem}. {mend}",
            node=node,
            replica=replica,
            call=call,
            samples=samples,
        )


class ReplicaLostError(RunError):
    """A replica whose process ended, was killed, or can no longer be reached.

    Args:
        why: what is known of it, e.g. ``its process was killed by signal 9``.
        mend: what to look for.
        node, replica, call, samples: as in :class:`RunError`; ``call`` is None where none is known to have run.
    """

    code = "replica-lost"

    def __init__(
        self,
        why: str,
        mend: str = "",
        *,
        node: str,
        replica: int,
        call: str | None = None,
        samples: tuple[int, int] | None = None,
    ) -> None:
        at = "" if call is None else f", call {call}"
        at += "" if samples is None else f", {say_samples(samples)}"
        super().__init__(
            f"node {node!r}, replica {replica}{at}: the replica was lost: {why}{'. ' if mend else ''}{mend}",
            node=node,
            replica=replica,
            call=call,
            samples=samples,
        )


def say_samples(samples: tuple[int, int]) -> str:
    """Return a half-open range of sample ids in words; up to 16 are listed one by one.

    >>> say_samples((4, 7)), say_samples((0, 100))
    ('samples 4, 5, 6', 'samples 0 to 99')
    """
    start, stop = samples
    if stop - start == 1:
        return f"sample {start}"
    if stop - start <= 16:
        return f"samples {', '.join(map(str, range(start, stop)))}"
    return f"samples {start} to {stop - 1}"


_MOST_LISTED = 20


def say_known(name: str, known: Sequence[str], kind: str) -> str:
    """Return the mend for an unknown name: the closest known one, then all of them, or the first of many.

    >>> say_known("polcy", ["policy", "reward"], "nodes")
    "Did you mean 'policy'? Known nodes: policy, reward"
    """
    listed = f"Known {kind}: {', '.join(known[:_MOST_LISTED]) if known else 'none'}"
    if len(known) > _MOST_LISTED:
        listed += f" and {len(known) - _MOST_LISTED} more"
    close = get_close_matches(name, known, n=1, cutoff=0.6)
    return f"Did you mean {close[0]!r}? {listed}" if close else listed


def say_exception(cause: BaseException) -> str:
    """Return the type and text of an exception, whatever it does when asked for its text.

    >>> say_exception(ValueError("boom")), say_exception(KeyError())
    ('ValueError: boom', 'KeyError')
    """
    try:
        text = str(cause)
    except BaseException as second:  # noqa: BLE001 - what it was raised for must not be lost over it
        text = f"(its text cannot be told: {type(second).__name__})"
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}... ({len(text)} characters)"
    return f"{type(cause).__name__}: {text}" if text else type(cause).__name__
