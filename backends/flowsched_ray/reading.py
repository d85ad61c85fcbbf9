"""Waiting for the outputs of a compiled graph, in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any, NamedTuple

_FOR_EVER = -1  # Ray would else give a step ten seconds, and lose what had come by then


class Ended(NamedTuple):
    """A step has ended: what came out, or what Ray raised."""

    pieces: Sequence[bytes]
    error: BaseException | None


class Reader:
    """A thread that waits for the outputs of one step after the other.

    Args:
        tell: is called, in that thread, with what became of each step.
    """

    def __init__(self, tell: Callable[[Ended], object]) -> None:
        self._steps: SimpleQueue[Sequence[Any] | None] = SimpleQueue()
        self._thread = threading.Thread(
            target=_read_all, args=(self._steps, tell), name="flowsched-ray-reader", daemon=True
        )
        self._thread.start()

    def read(self, refs: Sequence[Any]) -> None:
        """Have the outputs of a step waited for."""
        self._steps.put(refs)

    def end(self, patience: float) -> None:
        """End the thread: once it has read what there is, or Ray has ended the graph, or patience ends."""
        self._steps.put(None)
        self._thread.join(patience)


def _read_all(steps: SimpleQueue[Sequence[Any] | None], tell: Callable[[Ended], object]) -> None:
    while (refs := steps.get()) is not None:
        tell(_read(refs))
        del refs  # which would keep the graph until the next step


def _read(refs: Sequence[Any]) -> Ended:
    try:
        return Ended([ref.get(timeout=_FOR_EVER) for ref in refs], None)
    except BaseException as error:  # noqa: BLE001 - the thread that runs the step raises it
        return Ended([], error)
