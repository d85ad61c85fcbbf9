"""What the actor of one replica does: build the replica, then run the calls that it is sent, in order."""

from __future__ import annotations

import gc
import struct
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import ray

from flowsched.backend import (
    Binding,
    Links,
    Program,
    ReplicaContext,
    Seen,
    Step,
    pack_error,
    unpack_error,
    unpack_object,
)
from flowsched.batch import Batch
from flowsched.errors import BuildError, FlowschedError, OutputError, SessionError, say_exception
from flowsched.graph import Graph
from flowsched.plan import Plan
from flowsched_ray.arriving import arrive
from flowsched_ray.edge import count_bytes, decode, encode_rows
from flowsched_ray.packet import pack, unpack

PREFIX = struct.Struct("<qq")
"""How the head of a call begins: key of the plan, number of the step. More numbers follow: that of the call, the
range of rows that its signal carries (empty for none), and the ranges that are objects of their own."""


class CallFailed(Exception):  # noqa: N818 - it is only how an error travels
    """Carries an error, packed by :func:`flowsched.backend.pack_error`, through Ray."""

    def __init__(self, packed: bytes) -> None:
        self.packed = packed
        super().__init__(packed)

    def __str__(self) -> str:  # Ray shows it, where several calls fail and one is told of
        return say_exception(unpack_error(self.packed))


Signal = bytes | tuple[float, int, Seen | None, Any]
"""What the first object that a call returns tells the driver: the seconds in the worker, about how many bytes the
output takes, what was seen of the node's output where that is not as this replica told last, and the rows that it
carries, as they cross. Where nothing was seen and the rows are few, :data:`BRIEF` with the rows packed behind it,
else a plain tuple, which pickles fastest."""

BRIEF = struct.Struct("<dq")
"""The seconds and the bytes of a signal that Ray passes on without pickling it. Fragments that are packed have one
of zeros before them, so that a call reads both alike."""

_SILENT = bytes(BRIEF.size)


def pack_fragment(crossed: Any) -> Any:
    """Return rows as a call takes them: packed where they are few."""
    packed = pack(_SILENT, crossed)
    return crossed if packed is None else packed


def unpack_fragment(carried: Any) -> Any:
    """Return the rows, as they cross, of a fragment or of a signal that carries them."""
    if type(carried) is bytes:
        return unpack(carried, BRIEF.size)
    return carried[3] if type(carried) is tuple else carried


class _Known:
    """A plan that an actor keeps, and the links of its own calls."""

    def __init__(self, plan: Plan, seed: int) -> None:
        self.program = Program(plan)
        self.seed = seed
        self._links: dict[int, Links] = {}

    def links(self, call: int) -> Links:
        found = self._links.get(call)
        if found is None:
            found = self._links[call] = self.program.find_links(call)
        return found


class _Queue:
    """The calls of the latest step, as they were sent: in the next step of the plan they come again, unsaid."""

    def __init__(self) -> None:
        self._calls: list[list[int]] = []
        self._step = (-1, -1)
        self._next = 0

    def note(self, head: bytes) -> list[int]:
        """Return the numbers of a call's head, and take note of them."""
        numbers: list[int] = memoryview(head).cast("q").tolist()
        if (numbers[0], numbers[1]) != self._step:
            self._calls, self._step = [], (numbers[0], numbers[1])
        self._calls.append(numbers[2:])
        self._next = len(self._calls)
        return numbers

    def take_next(self) -> list[int]:
        """Return the numbers of the head that the next call would have."""
        if self._next == len(self._calls):
            self._next, self._step = 0, (self._step[0], self._step[1] + 1)
        self._next += 1
        return [*self._step, *self._calls[self._next - 1]]


class ReplicaActor:
    """One replica. Ray runs the constructor anew after a loss, so the replica is built when it is first needed."""

    threads: ClassVar[dict[str, int] | None] = None
    """Threads of the actor beside that in which it is built, by the group of methods that they serve."""

    def __init__(self, packed: bytes, node: str, replica: int, replicas: int) -> None:
        self._packed = packed
        self._place = node, replica, replicas
        self._workers: dict[int, Callable[..., Any]] | None = None
        self._known: dict[int, _Known] = {}
        self._step: Step | None = None
        self._step_at: tuple[int, int] | None = None
        self._told: dict[str, Seen] = {}
        self._queue = _Queue()
        self._over = False  # whether the step has failed here, or a worker has learnt that it is over

    def begin(self, packed: bytes, node: str, replica: int, replicas: int) -> None:
        """Be another replica, of another session."""
        type(self).__init__(self, packed, node, replica, replicas)

    def forget(self) -> None:
        """Let go of the replica and of all that came with its session."""
        self.begin(b"", "", 0, 0)
        gc.collect()

    def arrive(self) -> None:
        """Answer, which an actor does as soon as it has been placed and its process runs."""

    def build(self) -> float:
        """Build the replica and return the seconds that its constructor took.

        Raises:
            CallFailed: BuildError, its constructor raised.
        """
        try:
            return self._build()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the driver raises it
            raise CallFailed(pack_error(error)) from None

    def learn(self, key: int, lesson: tuple[Plan, int], forgotten: int | None) -> None:
        """Keep a plan and the session's seed under a key, in place of another."""
        if forgotten is not None:
            self._known.pop(forgotten, None)
        self._known[key] = _Known(*lesson)

    def run(self, head: bytes, *fragments: Any) -> Any:
        """Run one call and return its signal and one object for each range of rows that is read.

        Args:
            head: which call of which step, and the ranges.
            fragments: what it reads: the fragments of its first input in their order, then those of the next.

        Raises:
            CallFailed: whatever went wrong.
        """
        return self._run(self._queue.note(head), fragments)

    def run_next(self, *fragments: Any) -> Any:
        """Run the call after the last one, or the first one of the next step of the same plan, likewise."""
        return self._run(self._queue.take_next(), fragments)

    def run_or_learn(self, head: bytes, lesson: Sequence[Any], *fragments: Any) -> Any:
        """Run one call in an actor that may have been restarted and then gets the plan from ``lesson[0]``."""
        key = PREFIX.unpack_from(head)[0]
        if key not in self._known:
            self.learn(key, ray.get(lesson[0]), None)
        return self.run(head, *fragments)

    def _run(self, numbers: Sequence[int], fragments: tuple[Any, ...]) -> Any:
        try:
            key, number, call, start, stop, *ranges = numbers
            step, links = self._enter(key, number, call)
            batches = arrive(step, links, map(unpack_fragment, fragments), decode)
            output, seconds = self._call(step, links, batches)
            return self._hand_over(step, links, output, seconds, (start, stop), ranges)
        except BaseException as error:  # noqa: BLE001 - likewise
            self._over = True  # calls of the step that were submitted ahead are not made
            raise CallFailed(pack_error(error)) from None

    def _hand_over(
        self,
        step: Step,
        links: Links,
        output: Batch,
        seconds: float,
        carried: tuple[int, int],
        ranges: Sequence[int],
    ) -> Any:
        """Return a call's signal, which carries some rows, and the objects beside it."""
        try:
            rows = encode_rows(output, *carried) if carried[1] > carried[0] else None
            size = count_bytes(output)
            ends = zip(ranges[::2], ranges[1::2], strict=True)
            cuts = [pack_fragment(encode_rows(output, *cut)) for cut in ends]
        except Exception as error:
            raise explain_uncut(step, links, error) from error
        seen = self._find_news(step, links)
        brief = None if seen else pack(BRIEF.pack(seconds, size), rows)
        signal: Signal = (seconds, size, seen, rows) if brief is None else brief
        return [signal, *cuts] if cuts else signal

    def _enter(self, key: int, number: int, call: int) -> tuple[Step, Links]:
        """Return the step that a call belongs to, which begins with its first call here, and the call's links."""
        if self._workers is None:
            self._build()
        known = self._known[key]
        if self._step is None or self._step_at != (key, number):
            self._step = Step(known.program, self._binding, (), number, known.seed, ())
            self._step_at, self._over = (key, number), False
        if self._over:
            raise SessionError("the step is over")  # which nobody waits for any more
        return self._step, known.links(call)

    def _call(self, step: Step, links: Links, fragments: Sequence[Batch]) -> tuple[Batch, float]:
        """Return what a call makes of its fragments, and the seconds in the worker."""
        worker = (self._workers or {})[links.node]
        batches = step.join(links, _deal(links, fragments))
        began = time.perf_counter()
        output = step.run(links, worker, batches, self._device, self._is_cancelled)
        return output, time.perf_counter() - began

    def _is_cancelled(self) -> bool:
        self._over = self._over or ray.get_runtime_context().is_canceled()
        return self._over

    def _find_news(self, step: Step, links: Links) -> Seen | None:
        """Return what was seen of the node's output, unless that is as it was told last."""
        name = step.plan.graph.nodes[links.node].name
        seen, before = step.seen()[name], self._told.get(name)
        if before is not None and seen.structure == before.structure and seen.uneven == before.uneven:
            return None
        self._told[name] = seen
        return seen

    def _build(self) -> float:
        began = time.perf_counter()
        node, replica, replicas = self._place
        graph: Graph
        binding: Binding
        try:
            graph, binding = unpack_object(self._packed)
            self._device = "cuda:0" if ray.get_gpu_ids() else None
        except BaseException as cause:
            raise BuildError(node=node, replica=replica, replicas=replicas, cause=cause) from cause
        self._binding = binding
        self._workers = binding.build_workers(graph, ReplicaContext(node, replica, replicas, self._device))
        return time.perf_counter() - began


def _deal(links: Links, fragments: Sequence[Batch]) -> list[Sequence[Batch]]:
    """Return the fragments of each input."""
    if links.slices is not None:
        return [[fragment] for fragment in fragments]
    dealt, at = [], 0
    for read in links.reads:
        dealt.append(fragments[at : at + len(read.fragments)])
        at += len(read.fragments)
    return dealt


def explain_uncut(step: Step, links: Links, error: Exception) -> OutputError:
    """Return the error of a call whose output cannot be cut or sent to another process."""
    if isinstance(error, FlowschedError):
        problem, mend = f"its output cannot leave its process: {error}", "Return columns of plain data"
    else:  # out of memory, or what a column of the user's own type raises
        problem, mend = f"its output cannot be cut: {say_exception(error)}", "The cause stands above"
    return OutputError(problem, mend, **step.place(links.call))
