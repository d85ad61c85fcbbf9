"""The interface that every backend implements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from flowsched.backend.features import Feature
from flowsched.errors import SessionError
from flowsched.events import Observer
from flowsched.graph import Graph
from flowsched.runtime.binding import Binding
from flowsched.runtime.outputs import Outputs
from flowsched.runtime.step import Step


@dataclass(frozen=True, eq=False)
class Deployment:
    """What a backend is asked to bring up.

    Attributes:
        graph: the graph.
        binding: its models.
        replicas: how many replicas to build for each node that has its own; at most the node's ``replicas``.
        observer: is told of events, never by two threads at once; None if nobody listens.
    """

    graph: Graph
    binding: Binding
    replicas: Mapping[str, int]
    observer: Observer | None


class Running(ABC):
    """Live replicas on a backend."""

    def agree(self, samples: int | None) -> int:
        """Return the number of samples of the next step, on which all processes that run this session agree.

        Args:
            samples: rows of the inputs that this process was given, or samples of its plan; None where it has
                neither, which happens only where :meth:`Backend.needs_inputs` says that it need not.

        Raises:
            Exception: what another process has refused the step with; the session goes on.
        """
        if samples is None:
            raise SessionError("this step has no inputs. Give one batch for each source")
        return samples

    def refuse(self, error: Exception) -> None:  # noqa: B027 - a process alone has nobody to tell
        """Tell the other processes that run this session that this one does not begin the next step.

        It is called in place of :meth:`agree`, which raises ``error`` in all others. The session goes on.

        Args:
            error: what is raised here.

        Raises:
            Exception: another process has refused the same step with another error first.
        """

    def fail(self, error: Exception) -> None:  # noqa: B027 - likewise
        """Tell the other processes that this one does not run the step that they have agreed on.

        It is called in place of :meth:`run`, which raises ``error`` in all others. The session is then over.
        """

    @abstractmethod
    def run(self, step: Step) -> Outputs:
        """Execute one step and return its outputs.

        Each replica works off its queue in order; a call starts as soon as what it reads is there. The first
        failure is raised at once, from whatever replica it comes, and ends the step.

        Raises:
            RunError: a worker raised or returned something else than it must.
        """

    @abstractmethod
    def close(self) -> None:
        """End all replicas and free what they hold; does nothing the second time."""


class Backend(ABC):
    """A way to run plans. Options are the keyword arguments of the class's constructor.

    Attributes:
        name: the name that users write.
        lacks: what it cannot do; a session that needs any of it is refused before :meth:`start` is called.
    """

    name: ClassVar[str]
    lacks: ClassVar[frozenset[Feature]] = frozenset()

    @abstractmethod
    def start(self, deployment: Deployment) -> Running:
        """Build all replicas in parallel and return them, or nothing of them.

        Raises:
            CapacityError: the machine cannot hold them; found before any is built where possible.
            BuildError: a constructor raised; its exception is the cause.
        """

    def refuse(self, error: Exception) -> None:  # noqa: B027 - a process alone has nobody to tell
        """Tell the other processes that would start a session together that this one does not.

        It is called in place of :meth:`start`; they raise ``error``, as this one does.
        """

    def is_home(self) -> bool:
        """Return whether this process is the only one that runs the session, or the one that reports for all."""
        return True

    def needs_inputs(self) -> bool:
        """Return whether this process must give the inputs of each step; if not, it may give None."""
        return True

    @classmethod
    def problem(cls) -> str | None:
        """Return why the backend cannot work on this machine and the command that mends it, or None."""
        return None

    @classmethod
    def describe(cls) -> Mapping[str, Any]:
        """Return facts about what the backend has found on this machine, for ``flowsched doctor``."""
        return {}
