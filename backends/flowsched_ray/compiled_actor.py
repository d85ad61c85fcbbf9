"""What the actor of one replica does in a compiled graph: calls arrive over channels, not as tasks."""

from __future__ import annotations

import threading
from typing import Any, ClassVar

import ray

from flowsched.backend import pack_error
from flowsched_ray.actor import CallFailed, ReplicaActor, explain_uncut
from flowsched_ray.arriving import arrive
from flowsched_ray.edge import decode_copy, encode_rows
from flowsched_ray.piece import Piece, pack_piece, unpack_piece


class CompiledActor(ReplicaActor):
    """One replica whose calls are the tasks of a compiled graph.

    Ray runs these tasks in a thread of its own for as long as the graph is loaded, so that the actor can still
    be asked to watch out for failures, and told to stop, meanwhile.
    """

    threads: ClassVar[dict[str, int] | None] = {"watch": 1, "stop": 1}

    def __init__(self, packed: bytes, node: str, replica: int, replicas: int) -> None:
        super().__init__(packed, node, replica, replicas)
        self._ended = threading.Event()
        self._calling = threading.Lock()  # held in the middle of a call
        self._stopped = False
        self._failure: bytes | None = None

    @ray.method(concurrency_group="watch")
    def watch(self) -> None:
        """Return when the session ends; raise as soon as a call of this replica fails.

        Raises:
            CallFailed: whatever went wrong in the call.
        """
        self._ended.wait()
        if self._failure is not None:
            raise CallFailed(self._failure)

    @ray.method(concurrency_group="stop")
    def stop(self, grace: float) -> None:
        """Tell a worker that asks that its step is over, and wait for it as long as the grace time."""
        self._stopped = True
        self._ended.set()
        if self._calling.acquire(timeout=grace):
            self._calling.release()

    def run_compiled(self, tail: bytes, *pieces: bytes) -> Any:
        """Run one call and return one piece for each range of rows that is read.

        Args:
            tail: key of the plan, number of the call, and the ranges.
            pieces: what it reads: the fragments of its first input in their order, then those of the next.

        Raises:
            CallFailed: whatever went wrong.
        """
        with self._calling:
            try:
                return self._run_compiled(tail, [unpack_piece(carried) for carried in pieces])
            except BaseException as error:  # noqa: BLE001 - whatever it is, the driver raises it
                self._over = True
                if self._failure is None:
                    self._failure = pack_error(error)
                self._ended.set()
                raise CallFailed(self._failure) from None

    def _run_compiled(self, tail: bytes, pieces: list[Piece]) -> Any:
        key, call, *ranges = memoryview(tail).cast("q").tolist()
        number = pieces[0].step
        news = {report[:2]: report for piece in pieces for report in piece.news}
        step, links = self._enter(key, number, call)
        batches = arrive(step, links, [piece.rows for piece in pieces], decode_copy)
        output, _ = self._call(step, links, batches)
        try:
            rows = [encode_rows(output, *cut) for cut in zip(ranges[::2], ranges[1::2], strict=True)]
        except Exception as error:
            raise explain_uncut(step, links, error) from error
        if (seen := self._find_news(step, links)) is not None:
            news[links.node, links.replica] = links.node, links.replica, seen
        told = tuple(news.values())
        made = [pack_piece(Piece(number, told, each)) for each in rows or [None]]
        return made[0] if len(made) == 1 else tuple(made)

    def _is_cancelled(self) -> bool:
        return self._stopped
