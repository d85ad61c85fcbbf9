"""Running plans: one at once (``run``), or step by step on replicas that stay up (``start``)."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from flowsched.backend.discovery import make_backend
from flowsched.backend.features import refuse_lacking
from flowsched.backend.interface import Backend, Deployment, Running
from flowsched.batch import Batch
from flowsched.check import check_plan
from flowsched.errors import PlanError, Problem, SessionError
from flowsched.events import Observer, StepEnded, StepFailed, StepStarted
from flowsched.graph import Graph
from flowsched.plan import Plan
from flowsched.planner import compile_plan
from flowsched.runtime.binding import bind_models
from flowsched.runtime.inputs import (
    checked_whole,
    count_inputs,
    refuse_other_kind,
    refuse_other_rows,
    refuse_other_samples,
)
from flowsched.runtime.observing import OneAtATime
from flowsched.runtime.outputs import Outputs
from flowsched.runtime.program import Program
from flowsched.runtime.step import Step

_CACHED_PLANS = 16
_CALLS_A_REPLICA = 4


def run(
    plan: Plan,
    models: Mapping[str, Any],
    inputs: Mapping[str, Batch] | None,
    *,
    backend: str | Backend = "threads",
    seed: int = 0,
    max_in_flight: int | None = None,
    observer: Observer | None = None,
    **options: Any,
) -> Outputs:
    """Build the replicas that a plan uses, run one step of it and end them.

    Args:
        plan: the plan.
        models: one class, function or ``functools.partial`` for each node that has replicas of its own.
        inputs: one batch of ``plan.samples`` rows for each source. None on those of the processes that run
            the same session together which hold none; what those give is not looked at.
        backend: name of an installed backend, or one that is already made.
        seed: what the seeds of all rows are drawn from.
        max_in_flight: the most calls of one node that may have started while the output of the first of them
            is still needed; by default four for each replica. Where the plan needs more at once to go on at all,
            it has that many.
        observer: is called with each :mod:`flowsched.events` event. What it raises ends the step and is raised.
        options: the backend's own.

    Returns:
        The outputs of the graph by name, rows in the order of the inputs.

    Raises:
        CheckError: the plan, read from a file or made by hand, breaks a promise.
        BindingError: models do not fit the graph.
        InputError: inputs do not fit the plan.
        BackendError: the backend is unknown or cannot hold the replicas.
        RunError: a replica could not be built, or a worker failed; the user's exception is the cause.
    """
    _refuse_no_plan(plan)
    made = make_backend(backend, options)
    with _told_to_others(made.refuse):
        if made.needs_inputs():
            refuse_other_rows(plan, inputs)
        check_plan(plan)
    replicas = _replicas_used(plan)
    with Session(plan.graph, models, made, seed, max_in_flight, observer, replicas=replicas) as session:
        return session._run_checked(plan, inputs)


def start(
    graph: Graph,
    models: Mapping[str, Any],
    *,
    backend: str | Backend = "threads",
    seed: int = 0,
    max_in_flight: int | None = None,
    observer: Observer | None = None,
    **options: Any,
) -> Session:
    """Build all replicas of a graph, in parallel, and return the session that holds them.

    Arguments and errors are those of :func:`run`. Use it in a ``with`` statement: leaving it ends the replicas.
    """
    refuse_other_kind(graph, Graph, "graph", "Give the graph itself, e.g. plan.graph")
    replicas = {node.name: node.replicas for node in graph.owners()}
    made = make_backend(backend, options)
    return Session(graph, models, made, seed, max_in_flight, observer, replicas=replicas)


class Session:
    """Live replicas on a backend, built once and used for steps of any size. Made by :func:`start`."""

    def __init__(
        self,
        graph: Graph,
        models: Mapping[str, Any],
        backend: Backend,
        seed: int,
        max_in_flight: int | None,
        observer: Observer | None,
        *,
        replicas: Mapping[str, int],
    ) -> None:
        self.graph = graph
        self._needs_inputs = backend.needs_inputs()
        with _told_to_others(backend.refuse):
            self._binding = bind_models(graph, models)
            self._seed = checked_whole("seed", seed, 0)
            limit = None if max_in_flight is None else checked_whole("max_in_flight", max_in_flight, 1)
            refuse_lacking(backend.name, backend.lacks, graph, observer)
        self._limits = [limit or _CALLS_A_REPLICA * graph.owner(node.name).replicas for node in graph]
        self._observer = None if observer is None else OneAtATime(observer)
        self._programs: OrderedDict[int, Program] = OrderedDict()
        self._steps = 0
        self._lock = threading.Lock()
        self._turn: object | None = None
        self._ended: str | None = None
        deployment = Deployment(graph, self._binding, replicas, self._observer)
        try:
            self._running: Running = backend.start(deployment)
        except BaseException:
            if self._observer is not None:
                self._observer.mute()
            raise

    def run(self, inputs: Mapping[str, Batch] | None) -> Outputs:
        """Run one step on ``inputs``, of any number of rows; its plan is made, or taken from the cache.

        Where several processes run the session together, those that hold no inputs give None, and a step that
        one of them refuses is refused by all of them with the same error.

        Returns:
            The outputs of the graph by name, rows in the order of the inputs.

        Raises:
            InputError: a source is missing or surplus, or sources disagree on rows.
            PlanError: sizes cannot meet or be cut for this number of rows.
            RunError: a worker failed. The session is then over.
            SessionError: the session is over, is running a step in another thread, or was closed by one.
            Exception: whatever the observer raises. The session is then over, too.
        """
        with self._take_turn():
            with _told_to_others(self._running.refuse):
                rows = count_inputs(self.graph, inputs) if self._needs_inputs else None
            return self._run_step(self._program(self._running.agree(rows)), inputs)

    def run_plan(self, plan: Plan, inputs: Mapping[str, Batch] | None) -> Outputs:
        """Run one step by a plan that was made beforehand for this graph and this number of rows.

        Raises:
            PlanError: the plan was made for another graph.
            CheckError: it breaks a promise.
            InputError: inputs do not fit the plan.
            RunError, SessionError: likewise.
        """
        with self._take_turn():
            with _told_to_others(self._running.refuse):
                _refuse_no_plan(plan)
                _refuse_other_graph(plan, self.graph)
                if self._needs_inputs:
                    refuse_other_rows(plan, inputs)
                check_plan(plan)
            return self._run_agreed(plan, inputs)

    def _run_checked(self, plan: Plan, inputs: Mapping[str, Batch] | None) -> Outputs:
        with self._take_turn():
            return self._run_agreed(plan, inputs)

    def _run_agreed(self, plan: Plan, inputs: Mapping[str, Batch] | None) -> Outputs:
        agreed = self._running.agree(plan.samples)
        with _told_to_others(self._running.fail):
            refuse_other_samples(plan, agreed)
        return self._run_step(Program(plan), inputs)

    def close(self) -> None:
        """End all replicas. Does nothing the second time."""
        self._ended = self._ended or "it was closed"
        self._running.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = f"over: {self._ended}" if self._ended else f"{self._steps} steps run"
        return f"<Session of {self.graph.name}: {state}>"

    def _program(self, samples: int) -> Program:
        program = self._programs.pop(samples, None) or Program(compile_plan(self.graph, samples))
        self._programs[samples] = program
        if len(self._programs) > _CACHED_PLANS:
            self._programs.popitem(last=False)
        return program

    @contextmanager
    def _take_turn(self) -> Iterator[None]:
        """Hold the session for one step; also when interrupted at any point, it is held by nobody afterwards."""
        mine = object()
        try:
            with self._lock:
                if self._turn is not None:
                    raise SessionError(
                        "this session is running a step. Run one at a time, or start a second session"
                    )
                self._turn = mine
            if self._ended:
                raise SessionError(
                    f"this session is over: {self._ended}. Start another one with fs.start(...)"
                )
            yield
        finally:
            if self._turn is mine:
                self._turn = None

    def _run_step(self, program: Program, inputs: Mapping[str, Batch] | None) -> Outputs:
        step = self._make_step(program, inputs)
        began = time.perf_counter()
        try:
            if self._observer is not None:
                with _told_to_others(self._running.fail):
                    self._observer(_step_started(step))
            outputs = self._running.run(step)
            if self._observer is not None:
                self._observer(StepEnded(step.number, time.perf_counter() - began))
        except BaseException as error:
            self._ended = self._ended or f"step {step.number} failed with {type(error).__name__}"
            if self._observer is not None:
                self._observer.tell_failure(StepFailed(step.number, error))
            raise
        return outputs

    def _make_step(self, program: Program, inputs: Mapping[str, Batch] | None) -> Step:
        graph = self.graph
        given = inputs if self._needs_inputs else None
        held = [None if given is None else given[name] for name in graph.sources]
        window = [max(limit, span) for limit, span in zip(self._limits, program.spans, strict=True)]
        step = Step(program, self._binding, held, self._steps, self._seed, window)
        self._steps += 1
        return step


@contextmanager
def _told_to_others(tell: Callable[[Exception], None]) -> Iterator[None]:
    """Let the processes that run the session together know of what is raised here, for which they would wait."""
    try:
        yield
    except Exception as error:
        tell(error)
        raise


def _refuse_no_plan(plan: Plan) -> None:
    mend = "Give a plan, e.g. fs.compile(graph, samples=16), or use fs.start(graph, models)"
    refuse_other_kind(plan, Plan, "plan", mend)


def _refuse_other_graph(plan: Plan, graph: Graph) -> None:
    if plan.graph is not graph and plan.graph != graph:
        message = f"it was made for graph {plan.graph.name!r}, which is not the session's, or not as it was"
        mend = "Compile a plan for the graph that the session was started with"
        raise PlanError("plan", [Problem("wrong-graph", "plan", message, mend)])


def _replicas_used(plan: Plan) -> dict[str, int]:
    """Return, by owner, how many of its replicas have a call; they are the first ones."""
    used = dict.fromkeys((node.name for node in plan.graph.owners()), 0)
    for node in plan:
        owner, numbers = plan.graph.owner(node.name).name, node.numbers
        last = plan.table.replica[numbers.start : numbers.stop].max(initial=-1)
        used[owner] = max(used[owner], int(last) + 1)
    return used


def _step_started(step: Step) -> StepStarted:
    plan = step.plan
    calls = {node.name: len(node) for node in plan}
    rows = {node.name: int(plan.rows[node.name].read * plan.samples) for node in plan}
    return StepStarted(step.number, calls, rows)
