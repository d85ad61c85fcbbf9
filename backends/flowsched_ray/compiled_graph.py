"""A plan as one Ray compiled graph: each call a task, each fragment a channel between two actors."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
from ray.dag import InputNode, MultiOutputNode

from flowsched.backend import Program
from flowsched_ray.ranges import Range, find_ranges
from flowsched_ray.told import find_first_calls

Slice = tuple[int, int, int]
"""Source, and the half-open rows of it that calls read."""

_TASKS = logging.getLogger("ray.dag.compiled_dag_node")
_LEAST_BUFFER, _MOST_BUFFER = 65_536, 100_000_000


class LoadingError(Exception):
    """Ray has not loaded a graph in time.

    Attributes:
        thread: still loads it, until the actors are dead.
    """

    def __init__(self, thread: threading.Thread) -> None:
        self.thread = thread
        super().__init__(thread.name)


class CompiledGraph:
    """A compiled graph that is loaded in its actors.

    Args:
        program: the plan.
        key: its key in the actors.
        actor: returns the actor of a replica, by node and index.
        bytes_a_row: about the most bytes that a row takes, of which channels have room for the largest range.
        patience: seconds that Ray may take to load it: it waits for ever where the object store has no room.

    Raises:
        LoadingError: it took longer. The actors are of no use any more.

    Attributes:
        program: the plan.
        slices: what each step gives to it, in this order.
        outputs: the calls that it returns pieces of, in this order.
        first_calls: the first call of each node in each replica.
    """

    def __init__(
        self,
        program: Program,
        key: int,
        actor: Callable[[str, int], Any],
        bytes_a_row: float,
        patience: float,
    ) -> None:
        self.program = program
        self.slices = _find_slices(program)
        self.outputs: list[int] = []
        self.first_calls = find_first_calls(program)
        most = max(links.made for links in program.links)
        size = int(min(max(1.5 * bytes_a_row * most, _LEAST_BUFFER), _MOST_BUFFER))
        bound = self._bind(key, actor)
        # One step runs at a time. Ray would make ten of each channel, and frees none before the job ends.
        self._graph = _load(
            lambda: bound.experimental_compile(_buffer_size_bytes=size, _max_inflight_executions=1), patience
        )

    def execute(self, pieces: Sequence[Any]) -> list[Any]:
        """Begin a step and return what each of ``outputs`` can be read from, once."""
        refs: list[Any] = self._graph.execute(*pieces)
        return refs

    def unload(self, patience: float) -> bool:
        """Free the actors, which may be dead, and return whether that has ended within ``patience`` seconds.

        Ray may wait for ever for actors that live on. Does nothing the second time.
        """
        ending = threading.Thread(target=self._graph.teardown, name="unload", daemon=True)
        ending.start()
        ending.join(patience)
        return not ending.is_alive()

    def _bind(self, key: int, actor: Callable[[str, int], Any]) -> Any:
        program = self.program
        wanted = find_ranges(program)
        made: dict[tuple[int, int, int], Any] = {}
        returned = []
        with InputNode() as given:
            for at, (source, start, stop) in enumerate(self.slices):
                made[-1 - source, start, stop] = given[at]
            for call in np.argsort(program.plan.table.sequence, kind="stable").tolist():
                links = program.links[call]
                ranges = wanted.get(call, [])
                whole: Range = (0, links.made)
                if links.is_output:
                    ranges = [whole, *(rows for rows in ranges if rows != whole)]
                numbers = [key, call, *(number for rows in ranges for number in rows)]
                tail = np.array(numbers, "<i8").tobytes()
                objects = max(1, len(ranges))
                task = actor(links.owner, links.replica).run_compiled.options(num_returns=objects)
                reads = [made[fragment] for read in links.reads for fragment in read.fragments]
                bound = task.bind(tail, *reads)
                pieces = list(bound) if objects > 1 else [bound]
                made.update({(call, *rows): piece for rows, piece in zip(ranges, pieces, strict=False)})
                if links.is_output or not ranges:
                    self.outputs.append(call)
                    returned.append(pieces[0])
            return MultiOutputNode(returned)


def _load(compile_graph: Callable[[], Any], patience: float) -> Any:
    done: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()

    def load() -> None:
        try:
            done.put((compile_graph(), None))
        except BaseException as error:  # noqa: BLE001 - raised by who waits
            done.put((None, error))

    thread = threading.Thread(target=load, name="flowsched-ray-load", daemon=True)
    thread.start()
    try:
        graph, error = done.get(timeout=patience)
    except Empty:
        raise LoadingError(thread) from None
    if error is not None:
        raise error
    return graph


def _find_slices(program: Program) -> list[Slice]:
    found: dict[Slice, None] = {}
    for links in program.links:
        for read in links.reads:
            found.update(
                {(-1 - maker, start, stop): None for maker, start, stop in read.fragments if maker < 0}
            )
    return list(found)


@contextmanager
def silent() -> Iterator[None]:
    """Keep Ray from logging, with tracebacks, that actors which it is to free are dead."""
    before = _TASKS.level
    _TASKS.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        _TASKS.setLevel(before)
