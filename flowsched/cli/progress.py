"""A line of progress for each node while a step runs, on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Protocol, Self

from flowsched.cli.output import print_aside
from flowsched.events import CallEnded, Event, StepStarted

_SECONDS_BETWEEN_LINES = 1.0


@dataclass(frozen=True)
class NodeProgress:
    """How far a node is.

    Attributes:
        node: name of the node.
        calls, rows: what has ended.
        all_calls, all_rows: what there is, known exactly beforehand.
    """

    node: str
    calls: int
    rows: int
    all_calls: int
    all_rows: int

    def __str__(self) -> str:
        return f"{self.node} {self.calls}/{self.all_calls} calls, {self.rows}/{self.all_rows} rows"


class Progress(Protocol):
    """What shows progress: an observer that is entered before the run and left after it."""

    def __call__(self, event: Event) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


def make_progress() -> Progress:
    """Return bars where stderr is a terminal, lines elsewhere; neither ever ends a run."""
    return Bars() if sys.stderr is not None and sys.stderr.isatty() else Lines(print_aside)


class Counts:
    """The progress of every node, from the events of a session."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeProgress] = {}

    def take(self, event: Event) -> tuple[NodeProgress, ...]:
        """Take in an event; return the nodes that it changed."""
        match event:
            case StepStarted(calls=calls, rows=rows):
                self.nodes = {node: NodeProgress(node, 0, 0, calls[node], rows[node]) for node in calls}
                return tuple(self.nodes.values())
            case CallEnded(node=node, rows=read):
                old = self.nodes[node]
                self.nodes[node] = replace(old, calls=old.calls + 1, rows=old.rows + read)
                return (self.nodes[node],)
        return ()


class Lines(AbstractContextManager["Lines"]):
    """Plain lines: each node's at most once a second, and once when it is done.

    Args:
        write: takes each line.
        clock: returns seconds.
    """

    def __init__(self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._write = write
        self._clock = clock
        self._counts = Counts()
        self._written: dict[str, float] = {}

    def __call__(self, event: Event) -> None:
        now = self._clock()
        for node in self._counts.take(event):
            due = now - self._written.setdefault(node.node, now) >= _SECONDS_BETWEEN_LINES
            if due or (node.calls and node.calls == node.all_calls):
                self._written[node.node] = now
                self._write(str(node))

    def __exit__(self, *_: object) -> None:
        return None


class Bars(AbstractContextManager["Bars"]):
    """One live bar a node, drawn by rich."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._counts = Counts()
        self._tasks: dict[str, Any] = {}
        self._live = Progress(
            TextColumn("{task.fields[node]}"),
            BarColumn(),
            TextColumn("{task.fields[said]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
        )
        self._is_lost = False

    def __call__(self, event: Event) -> None:
        changed = self._counts.take(event)
        if not self._is_lost:
            with self._losing():
                self._show(changed)

    def _show(self, changed: tuple[NodeProgress, ...]) -> None:
        for node in changed:
            said = str(node).removeprefix(f"{node.node} ")
            if node.node not in self._tasks:
                self._tasks[node.node] = self._live.add_task(
                    "", total=node.all_rows, node=node.node, said=said
                )
            self._live.update(self._tasks[node.node], completed=node.rows, total=node.all_rows, said=said)

    def __enter__(self) -> Self:
        with self._losing():
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._losing():
            self._live.stop()

    @contextmanager
    def _losing(self) -> Iterator[None]:
        """Go quiet when the terminal is gone."""
        try:
            yield
        except (OSError, ValueError):
            self._is_lost = True
