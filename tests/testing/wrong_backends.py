"""Backends that are wrong in one way each: threads, with something spoilt around them."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from flowsched_threads import ThreadsBackend
from flowsched_torch import TorchBackend

import flowsched as fs
from flowsched.backend import Backend, Deployment, Feature, Links, Outputs, Program, Running, Step
from flowsched.batch import Batch, concat, take
from flowsched.errors import RunError, WorkerError
from flowsched.events import CallEnded, Event


class Around(Running):
    """Replicas on threads, with a hook before and after each step."""

    def __init__(self, inner: Running, backend: Backend) -> None:
        self.inner = inner
        self.backend = backend if isinstance(backend, Wrong) else Wrong()

    def run(self, step: Step) -> Outputs:
        return self.backend.after(self.inner.run(self.backend.before(step)))

    def close(self) -> None:
        self.inner.close()


class Wrong(ThreadsBackend):
    """Wrong in nothing yet: the suite passes."""

    def start(self, deployment: Deployment) -> Any:
        return Around(super().start(self.deployed(deployment)), self)

    def deployed(self, deployment: Deployment) -> Deployment:
        return deployment

    def before(self, step: Step) -> Step:
        return step

    def after(self, outputs: Outputs) -> Outputs:
        return outputs


def _changed(outputs: Outputs, change: Callable[[Batch, int], Batch]) -> Outputs:
    """Return outputs after ``change(batch, rows)`` of each that has rows."""
    pieces: dict[str, Sequence[Batch]] = {}
    for name in outputs:
        rows = len(outputs[name]) if isinstance(outputs[name], np.ndarray | list) else 0
        pieces[name] = [change(outputs[name], rows)] if rows else outputs.pieces(name)
    return Outputs(pieces, {name: {} for name in outputs})


def _replanned(step: Step, graph: fs.Graph) -> Step:
    """Return the step as if it were one of another graph of the same nodes."""
    program = Program(fs.compile(graph, step.plan.samples))
    return Step(program, step.binding, step.inputs, step.number, step.seed, [1_000_000] * len(graph.nodes))


def _nodes(graph: fs.Graph, **changed: Callable[[fs.Node], Any]) -> fs.Graph:
    nodes = []
    for node in graph:
        row = {item.name: getattr(node, item.name) for item in dataclasses.fields(node)}
        nodes.append(fs.Node(**{**row, **{name: make(node) for name, make in changed.items()}}))
    return fs.Graph(graph.name, graph.sources, nodes, graph.outputs)


class LosesTheTail(Wrong):
    """Loses the rows that do not fill up a multiple of eight."""

    def after(self, outputs: Outputs) -> Outputs:
        return _changed(outputs, lambda batch, rows: take(batch, 0, rows // 8 * 8) if rows > 8 else batch)


class PadsTheTail(Wrong):
    """Repeats the last row up to a multiple of eight."""

    def after(self, outputs: Outputs) -> Outputs:
        def pad(batch: Batch, rows: int) -> Batch:
            return concat([batch, *[take(batch, rows - 1, rows)] * (-rows % 8)]) if rows > 8 else batch

        return _changed(outputs, pad)


class SwapsTwoRows(Wrong):
    """Returns the first two rows in the other order."""

    def after(self, outputs: Outputs) -> Outputs:
        def swap(batch: Batch, rows: int) -> Batch:
            parts = [take(batch, 1, 2), take(batch, 0, 1), take(batch, 2, rows)]
            return concat(parts) if rows > 1 else batch

        return _changed(outputs, swap)


class _TwiceStep(Step):
    def run(self, links: Links, worker: Callable[..., Any], *rest: Any) -> Batch:
        if links.call == 0:
            super().run(links, worker, *rest)
        return super().run(links, worker, *rest)


def _as(kind: type[Step], step: Step) -> Step:
    return kind(step.program, step.binding, step.inputs, step.number, step.seed, step.window)


class CallsTwice(Wrong):
    """Makes one call of each step twice, and drops what it made first."""

    def before(self, step: Step) -> Step:
        return _as(_TwiceStep, step)


class IgnoresAfter(Wrong):
    """Does not hold a node back that comes after another."""

    def before(self, step: Step) -> Step:
        return _replanned(step, _nodes(step.plan.graph, after=lambda _: []))


class HasBarriers(Wrong):
    """Starts a node when all calls of those that it reads have ended."""

    def before(self, step: Step) -> Step:
        graph = step.plan.graph

        def read(node: fs.Node) -> list[str]:
            return sorted({*node.after, *(name for name in node.inputs if name in graph)})

        return _replanned(step, _nodes(graph, after=read))


class UsesOneReplica(Wrong):
    """Sends all calls to the first replica of their node."""

    def before(self, step: Step) -> Step:
        replicas = _nodes(step.plan.graph, replicas=lambda _: 1)
        return _replanned(step, replicas)


class StartsInReverse(Wrong):
    """Has each replica make its calls for nodes that read only sources in the reverse order."""

    def before(self, step: Step) -> Step:
        plan, table = step.plan, step.plan.table
        position = table.position.copy()
        for node, own in zip(plan.graph, step.program.numbers, strict=True):
            if set(node.inputs) <= set(plan.graph.sources) and not plan.graph[node.name].replicas_of:
                for replica in range(node.replicas):
                    calls = np.array(own)[table.replica[own.start : own.stop] == replica]
                    position[calls] = position[calls[::-1]]
        turned = fs.Plan(plan.graph, plan.samples, dataclasses.replace(table, position=position))
        return Step(
            Program(turned), step.binding, step.inputs, step.number, step.seed, [1_000_000] * len(step.window)
        )


class _MisalignedStep(Step):
    def gather(self, links: Links, outputs: Any) -> list[Batch]:
        batches = super().gather(links, outputs)
        last = batches[-1]
        if len(batches) > 1 and isinstance(last, np.ndarray):
            batches[-1] = np.roll(last, 1, axis=0)
        return batches


class Misaligns(Wrong):
    """Gives the last of several inputs with its rows turned by one."""

    def before(self, step: Step) -> Step:
        return _as(_MisalignedStep, step)


class _BuiltAnew(Running):
    def __init__(self, build: Callable[[], Running]) -> None:
        self.build = build
        self.inner = build()

    def run(self, step: Step) -> Outputs:
        self.inner.close()
        self.inner = self.build()
        return self.inner.run(step)

    def close(self) -> None:
        self.inner.close()


class BuildsForEachStep(Wrong):
    """Builds all replicas anew for each step."""

    def start(self, deployment: Deployment) -> Any:
        quiet = dataclasses.replace(deployment, observer=None)
        return _BuiltAnew(lambda: ThreadsBackend().start(quiet))


class _SlowToFail(Around):
    def run(self, step: Step) -> Outputs:
        try:
            return super().run(step)
        except RunError:
            if step.plan.graph.nodes[0].replicas > 3:
                time.sleep(1.5)
            raise


class FailsLate(Wrong):
    """Tells a failure of one among many replicas when some time-out is over."""

    def start(self, deployment: Deployment) -> Any:
        return _SlowToFail(ThreadsBackend().start(deployment), self)


class _Hiding(Around):
    def run(self, step: Step) -> Outputs:
        try:
            return super().run(step)
        except WorkerError as error:
            error.__cause__, error.__suppress_context__ = None, True
            raise


class HidesTheCause(Wrong):
    """Raises the failure of a worker without the worker's own exception."""

    def start(self, deployment: Deployment) -> Any:
        return _Hiding(ThreadsBackend().start(deployment), self)


class _Unchained(Around):
    def run(self, step: Step) -> Outputs:
        try:
            return super().run(step)
        except WorkerError as error:
            if error.__cause__ is not None:
                error.__cause__ = error.__cause__.with_traceback(None)
            raise


class DropsTheTraceback(Wrong):
    """Raises the worker's exception without where it was raised."""

    def start(self, deployment: Deployment) -> Any:
        return _Unchained(ThreadsBackend().start(deployment), self)


class _Masking(Around):
    def run(self, step: Step) -> Outputs:
        try:
            return super().run(step)
        except RunError as error:
            raise TimeoutError("no answer from the replicas") from error


class MasksTheFailure(Wrong):
    """Raises what went wrong later, as collectives do that time out."""

    def start(self, deployment: Deployment) -> Any:
        return _Masking(ThreadsBackend().start(deployment), self)


class _NeverCancelled(Step):
    def run(
        self,
        links: Links,
        worker: Callable[..., Any],
        batches: Sequence[Batch],
        device: str | None,
        cancelled: Callable[[], bool],  # noqa: ARG002 - that is what is wrong
    ) -> Batch:
        return super().run(links, worker, batches, device, lambda: False)


class DropsCancellation(Wrong):
    """Never tells workers that their step is over."""

    def before(self, step: Step) -> Step:
        return _as(_NeverCancelled, step)


class IgnoresTheLimit(Wrong):
    """Starts calls however many outputs are still needed."""

    def before(self, step: Step) -> Step:
        return dataclasses.replace(step, window=[1_000_000] * len(step.window))


class LeavesAThread(Wrong):
    """Leaves a thread behind with each session."""

    def deployed(self, deployment: Deployment) -> Deployment:
        threading.Thread(target=threading.Event().wait, args=(600,), name="left", daemon=True).start()
        return deployment


def _listening(deployment: Deployment, hear: Callable[[Event], Event | None]) -> Deployment:
    tell = deployment.observer
    if tell is None:
        return deployment

    def heard(event: Event) -> None:
        if (changed := hear(event)) is not None:
            tell(changed)

    return dataclasses.replace(deployment, observer=heard)


class CountsRowsWrongly(Wrong):
    """Tells observers one row too many for each call."""

    def deployed(self, deployment: Deployment) -> Deployment:
        def hear(event: Event) -> Event:
            return dataclasses.replace(event, rows=event.rows + 1) if isinstance(event, CallEnded) else event

        return _listening(deployment, hear)


class ForgetsToTell(Wrong):
    """Does not tell observers of the first call of a replica."""

    def deployed(self, deployment: Deployment) -> Deployment:
        def hear(event: Event) -> Event | None:
            return None if isinstance(event, CallEnded) and event.position == 0 else event

        return _listening(deployment, hear)


class _WritableStep(Step):
    def gather(self, links: Links, outputs: Any) -> list[Batch]:
        return [_copied(batch) for batch in super().gather(links, outputs)]


def _copied(batch: Batch) -> Batch:
    if isinstance(batch, dict):
        return {name: _copied(column) for name, column in batch.items()}
    return batch.copy() if isinstance(batch, np.ndarray) else batch


class LetsWorkersWrite(Wrong):
    """Gives each reader arrays of its own, where nobody is told that others see other rows."""

    def before(self, step: Step) -> Step:
        return _as(_WritableStep, step)


class WidensBfloat16(Wrong):
    """Carries tensors of bfloat16 as float32, since numpy has no such type."""

    def after(self, outputs: Outputs) -> Outputs:
        pieces: Mapping[str, Sequence[Batch]] = {
            name: [_widened(piece) for piece in outputs.pieces(name)] for name in outputs
        }
        return Outputs(pieces, {name: {} for name in outputs})


def _widened(piece: Batch) -> Batch:
    return piece.float() if str(getattr(piece, "dtype", "")) == "torch.bfloat16" else piece


class ForgetsTheStep(Wrong):
    """Tells workers that every step is the first."""

    def before(self, step: Step) -> Step:
        return dataclasses.replace(step, number=0)


class _Swallowing(Around):
    def run(self, step: Step) -> Outputs:
        try:
            return super().run(step)
        except KeyboardInterrupt:
            raise RuntimeError("stopped") from None


class SwallowsCtrlC(Wrong):
    """Turns an interruption into an error of its own."""

    def start(self, deployment: Deployment) -> Any:
        return _Swallowing(ThreadsBackend().start(deployment), self)


class MasksALoss(TorchBackend):
    """Tells the loss of a process as a time-out of those that waited for it."""

    def start(self, deployment: Deployment) -> Any:
        return _Masking(super().start(deployment), self)


class LacksEverything(Wrong):
    """Declares to lack all that a backend may lack."""

    name = "bare"
    lacks = frozenset(Feature)
