"""Local ranks: processes of this machine that this program starts, drives and ends."""

from __future__ import annotations

import os
import pickle
import socket
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch.distributed as dist

from flowsched.backend import Deployment, Outputs, Running, Step, pack_object, unpack_error
from flowsched.errors import SessionError
from flowsched.programs import Placement
from flowsched_torch.arrivals import Arrivals
from flowsched_torch.board import Board
from flowsched_torch.building import Building
from flowsched_torch.control import Connection, Frame, Kind
from flowsched_torch.devices import Devices
from flowsched_torch.forking import Forking
from flowsched_torch.hub import GoneError, Hub, SilentError
from flowsched_torch.local_losses import LocalLosses
from flowsched_torch.mesh import Mesh
from flowsched_torch.plans import PlanNumbers, Plans
from flowsched_torch.schedule import RankPlan
from flowsched_torch.seen import SeenByPlan
from flowsched_torch.serve import STEP, Job, Surroundings
from flowsched_torch.steps import RankStep, begin_void, end_void
from flowsched_torch.telling import InOrder, Teller

_PATIENCE = 5.0  # seconds that ranks without work are given to end


class LocalRanks(Running):
    """Ranks that were forked for one session; this process is one more, which runs no calls.

    Its main thread waits for the control plane alone, where a failure or an interruption is noticed at once,
    and turns to the data when that is there.

    Args:
        deployment: what to bring up.
        placement: on which ranks.
        devices: what replicas are given.
        forking: what ranks are forked from.
        grace: seconds that closing waits for workers that a failure or an interruption left in a call.
        timeout: seconds after which a rank that neither answers nor dies is given up.
        build_timeout: seconds in which all replicas must be built; None for as long as that takes.
    """

    def __init__(
        self,
        deployment: Deployment,
        placement: Placement,
        devices: Devices,
        forking: Forking,
        grace: float,
        timeout: float,
        build_timeout: float | None = None,
    ) -> None:
        self._deployment, self._placement = deployment, placement
        self._forking, self._grace, self._timeout = forking, grace, timeout
        self._is_observed = deployment.observer is not None
        self._home = placement.home
        self._turn = threading.RLock()
        self._closed = False
        self._step: Step | None = None
        self._idle = False  # whether no rank can be in the middle of its constructors or a call
        self._ended = 0  # how many steps have ended on all ranks
        self._numbers = PlanNumbers()
        self._last: int | None = None  # the plan of the last step
        self._staying: int | None = None  # the plan of which the ranks have begun the next step already
        self._seen = SeenByPlan()
        self._pids: list[int] = []  # of the ranks, by their numbers
        self._mesh: Mesh | None = None
        self._board, self._arrivals = Board.make(placement.ranks), Arrivals.make()
        ends = [(socket.socketpair(), socket.socketpair()) for _ in range(placement.ranks)]
        orders = {rank: Connection(order[0]) for rank, (order, _) in enumerate(ends)}
        alarms = {rank: Connection(alarm[0]) for rank, (_, alarm) in enumerate(ends)}
        self._hub = Hub(orders, alarms, timeout)
        self._losses = LocalLosses(
            self._hub, self._board, forking, placement, deployment.replicas, timeout, self._pids
        )
        self._teller = Teller(deployment.observer, self._hub.wake)
        self._forgotten = weakref.finalize(self, _abandon, self._hub, self._board, self._arrivals)
        self._is_late = False
        self._building = Building(placement, deployment.replicas, build_timeout, self._end_building)
        try:
            with self._explained():
                self._start(devices, [(order[1], alarm[1]) for order, alarm in ends])
                self._end_telling()
        except BaseException:
            self._teller.end()
            self.close()
            raise
        finally:
            self._building.end()
        self._idle = True

    def run(self, step: Step) -> Outputs:
        """Execute one step; see :meth:`flowsched.backend.Running.run`."""
        with self._turn:
            if self._closed:
                raise SessionError(f"the session was closed before step {step.number} began")
            self._step, self._idle = step, False
            self._teller = Teller(self._deployment.observer, self._hub.wake)
            try:
                with self._explained():
                    outputs = self._run(step)
                    self._idle = True
                    self._end_telling()
                return outputs
            except BaseException:
                self._teller.end()
                self._hub.alarm(Kind.OVER)
                raise
            finally:
                self._step = None  # it holds the inputs

    def close(self) -> None:
        """End the ranks; those that a failure left in the middle of a call are waited for the grace time."""
        self._closed = True
        if self._step is not None:
            self._hub.wake()
        with self._turn:
            if not self._forgotten.alive:
                return
            left = self._pids
            if self._idle and self._begin_end():
                self._hub.order(Kind.OVER)
                left = self._forking.wait_for(left, _PATIENCE)
            self._hub.alarm(Kind.OVER)
            left = self._forking.wait_for(left, self._grace)
            self._forking.kill(left)
            self._forking.forget(self._pids)
            if self._mesh is not None:
                self._plans.close()
                self._mesh = None
            self._forgotten()

    def _start(self, devices: Devices, ends: Sequence[tuple[socket.socket, socket.socket]]) -> None:
        deployment = self._deployment
        binding = deployment.binding
        job = Job(deployment.graph, binding, dict(deployment.replicas), self._placement, devices)
        around = Surroundings(
            list(sys.path), str(Path.cwd()), dict(os.environ), list(sys.argv), pack_object(job)
        )
        try:
            shared = self._board.file, *self._arrivals.files
            files = [(order.fileno(), alarm.fileno(), *shared) for order, alarm in ends]
            self._pids += self._forking.fork(pickle.dumps(around), files)
            self._building.begin()
        finally:
            for end in ends:
                for side in end:
                    side.close()
        self._wait_for(Kind.READY)
        self._building.end()
        with tempfile.TemporaryDirectory(prefix="flowsched-") as folder:
            meeting, size = str(Path(folder) / "meeting"), self._placement.processes
            self._hub.order(Kind.JOIN, 0, meeting.encode())
            store: Any = dist
            mesh = Mesh(store.FileStore(meeting, size), self._home, size, host="127.0.0.1")
            self._plans, self._mesh = Plans(self._placement, self._home, mesh), mesh
            self._wait_for(Kind.JOINED)

    def _end_building(self) -> None:
        self._is_late = True
        self._hub.wake()

    def _run(self, step: Step) -> Outputs:
        number = self._know(step)
        own = self._plans[number]
        self._arrivals.expect(len(own.reporters))
        if number != self._staying:
            stays = number == self._last
            self._hub.order(Kind.STEP, number, STEP.pack(step.number, self._is_observed, stays))
            self._last, self._staying = number, number if stays else None
        running = RankStep(own, {}, lambda: False, lambda _: None, lambda _: None, {})
        running.begin(step)
        ended = InOrder(step, self._teller.tell) if self._is_observed else None
        self._wait_for_end(own, running, ended)
        outputs = running.take_outputs()
        running.end()
        self._seen.meet(number, step)
        return step.collect(outputs)

    def _know(self, step: Step) -> int:
        """Return what all ranks call the plan, telling them of it first if need be."""
        window = tuple(step.window)
        number, is_new, forgotten = self._numbers.find((step.plan.hash, window, step.seed))
        if self._staying not in (None, number):
            self._call_back()
        if is_new:
            self._plans.add(number, step.program, window, checked=False)
            self._hub.order(Kind.PLAN, number, pickle.dumps((step.plan, window, step.seed), 5))
        if forgotten is not None:
            self._plans.forget(forgotten)
            self._seen.forget(forgotten)
            self._hub.order(Kind.FORGET, forgotten)
        return number

    def _call_back(self) -> None:
        """Have ranks that have begun a step beforehand end it as void."""
        if self._staying is not None:
            own = self._plans[self._staying]
            self._arrivals.expect(len(own.reporters))
            begin_void(own)
            self._wait_for_end(own)
            end_void(own)
            self._staying = None

    def _begin_end(self) -> bool:
        """Have ranks that have begun a step beforehand end it as void; False where one of them is gone."""
        try:
            if self._staying is not None:
                begin_void(self._plans[self._staying])
        except RuntimeError:  # gloo's
            return False
        return True

    def _wait_for(self, kind: Kind) -> None:
        """Wait until all ranks have said something; errors are those of :meth:`_hear_until`."""
        left = set(range(self._placement.ranks))

        def take(rank: int, frame: Frame) -> None:
            if frame.kind is kind:
                left.discard(rank)
            else:
                self._take(rank, frame, None, None)

        self._hear_until(lambda: not left, take)

    def _wait_for_end(
        self, own: RankPlan, running: RankStep | None = None, ended: InOrder | None = None
    ) -> None:
        """Wait until a step has ended everywhere; errors are those of :meth:`_hear_until`."""
        awaited = self._ended + bool(own.reporters)
        self._hear_until(
            lambda: self._ended == awaited, lambda rank, frame: self._take(rank, frame, running, ended)
        )

    def _hear_until(self, is_done: Callable[[], bool], take: Callable[[int, Frame], None]) -> None:
        """Take what ranks say until that is enough.

        Raises:
            RunError: a rank failed or was lost.
            SessionError: the session was closed meanwhile.
        """
        try:
            while not is_done():
                for rank, frame in self._hub.hear():
                    take(rank, frame)
                self._teller.raise_if_any()
                self._raise_if_closed()
                if self._is_late:
                    raise self._building.error()
            for rank, frame in self._hub.rest():  # what was said before, on other connections
                take(rank, frame)
        except GoneError as gone:
            raise self._losses.lost(gone.rank, self._step) from None
        except SilentError as silent:
            raise self._losses.silent(silent.rank, self._step) from None

    def _take(self, rank: int, frame: Frame, running: RankStep | None, ended: InOrder | None) -> None:
        if frame.kind is Kind.ENDED:
            self._ended += 1
        elif frame.kind is Kind.SEEN:
            self._seen.hear(frame.number, rank, frame.payload)
        elif frame.kind is Kind.BUILT:
            event = pickle.loads(frame.payload)
            self._building.note(event)
            self._teller.tell(event)
        elif frame.kind is Kind.EVENT and ended is not None:
            ended.hear(pickle.loads(frame.payload))
        elif frame.kind is Kind.LOOK and running is not None:
            running.take_output(frame.number)
        elif frame.kind is Kind.FAILED:
            raise unpack_error(frame.payload)
        elif frame.kind is Kind.BROKEN:
            raise self._losses.behind(unpack_error(frame.payload), self._step)

    def _end_telling(self) -> None:
        """Wait until the observer has been told of everything, unless it closes the session meanwhile."""
        self._teller.end()
        while self._teller.is_busy(0.01):
            self._raise_if_closed()
        self._teller.raise_if_any()

    def _raise_if_closed(self) -> None:
        step = self._step
        if self._closed and step is not None:
            raise SessionError(f"the session was closed in the middle of step {step.number}")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise why a connection was lost, in place of what gloo says of it: it raises RuntimeErrors."""
        try:
            yield
        except RuntimeError as error:
            self._teller.raise_if_any()  # an observer may raise one, too
            cause = self._losses.behind(error, self._step)
            cause.__suppress_context__ = True  # and its own cause is kept
            raise cause  # noqa: B904


def _abandon(hub: Hub, board: Board, arrivals: Arrivals) -> None:
    hub.close()
    board.close()
    arrivals.close()
