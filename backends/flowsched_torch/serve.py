"""What a local rank does: build its replicas, connect to the others, and run its part of each step."""

from __future__ import annotations

import atexit
import ctypes
import os
import pickle
import signal
import socket
import struct
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import torch
import torch.distributed as dist

from flowsched.backend import Binding, Step, pack_error, unpack_object
from flowsched.errors import BackendError, say_exception
from flowsched.events import CallEnded, ReplicaBuilt
from flowsched.graph import Graph
from flowsched.programs import Placement
from flowsched_torch.arrivals import Arrivals
from flowsched_torch.board import Board
from flowsched_torch.control import Connection, Frame, Kind
from flowsched_torch.devices import Devices
from flowsched_torch.direct import NcclDirect
from flowsched_torch.mesh import Mesh
from flowsched_torch.messages import VoidError
from flowsched_torch.plans import Plans
from flowsched_torch.replicas import build_replicas
from flowsched_torch.schedule import RankPlan
from flowsched_torch.seen import News
from flowsched_torch.steps import CancelledError, RankStep, Workers

STEP = struct.Struct(
    "<Q??"
)  # number of the step, whether somebody listens, whether the next is likely the same
_DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG


@dataclass(frozen=True)
class Surroundings:
    """What a rank takes over from the process that started it.

    Attributes:
        path: where modules are found.
        folder: the working directory.
        environment: the variables.
        arguments: of the program.
        job: the packed :class:`Job`.
    """

    path: list[str]
    folder: str
    environment: dict[str, str]
    arguments: list[str]
    job: bytes


@dataclass(frozen=True)
class Job:
    """What the ranks of one session are to serve.

    Attributes:
        graph: the graph.
        binding: its models.
        built: how many replicas of each node to build.
        placement: on which ranks.
        devices: what they are given.
    """

    graph: Graph
    binding: Binding
    built: dict[str, int]
    placement: Placement
    devices: Devices


def serve(rank: int, payload: bytes, files: list[int], parent: int) -> NoReturn:
    """Serve as a rank until told to end, in a process that was forked for it."""
    _die_with(parent)
    status = 1
    try:
        orders, alarms = (Connection(socket.socket(fileno=file)) for file in files[:2])
        _Rank(rank, orders, alarms, Board.open(files[2]), Arrivals((files[3], files[4]))).serve(payload)
        status = 0
    except SystemExit:
        status = 0
    except BaseException:  # noqa: BLE001 - it is the rank's own, and there is nobody above
        sys.excepthook(*sys.exc_info())
    with suppress(Exception):
        atexit._run_exitfuncs()
    _leave(status)


class _Rank:
    """A rank, as its main thread and the thread that hears alarms see it."""

    def __init__(
        self, rank: int, orders: Connection, alarms: Connection, board: Board, ended: Arrivals
    ) -> None:
        self._rank, self._orders, self._alarms, self._board = rank, orders, alarms, board
        self._ended = ended
        self._over = False
        self._moving = False  # whether the main thread is in a step, outside of what is the user's
        self._job: Job
        self._workers: Workers
        self._plans: Plans
        self._seeds: dict[int, tuple[int, list[int]]] = {}
        self._seen = News()
        self._running: RankStep | None = None

    def serve(self, payload: bytes) -> None:
        threading.Thread(target=self._hear_alarms, name="alarms", daemon=True).start()
        torch.set_num_threads(1)
        try:
            self._workers = self._build(payload)
        except BaseException as error:  # noqa: BLE001 - whatever it is, home raises it
            self._fail(error)
        self._orders.send(Kind.READY)
        while (frame := self._orders.receive()) is not None and not self._over:
            if frame.kind is Kind.STEP:
                self._run_steps(frame.number, *STEP.unpack(frame.payload))
            elif frame.kind is Kind.PLAN:
                self._add_plan(frame)
            elif frame.kind is Kind.FORGET:
                self._plans.forget(frame.number)
                self._running = None
                del self._seeds[frame.number]
                self._seen.forget(frame.number)
            elif frame.kind is Kind.JOIN:
                self._join(frame.payload.decode())
            elif frame.kind is Kind.OVER:
                return

    def _build(self, payload: bytes) -> Workers:
        around: Surroundings = pickle.loads(payload)
        sys.path[:], sys.argv[:] = around.path, around.arguments
        os.environ.clear()
        os.environ.update(around.environment)
        os.chdir(around.folder)
        try:
            job: Job = unpack_object(around.job)
        except Exception as error:
            raise BackendError(
                f"the models cannot be read in the process of a rank: {say_exception(error)}. Make what belongs to "
                "one process in the model's constructor, which runs where the replica is"
            ) from error
        self._job = job
        served = {
            name: [replica for replica in replicas if replica < job.built[name]]
            for name, replicas in job.placement.served_by(self._rank).items()
        }
        return build_replicas(
            job.graph,
            job.binding,
            served,
            lambda node, replica: job.devices.device_of(node, replica, self._rank),
            self._tell_built,
            self._board.note_build(self._rank),
        )

    def _join(self, meeting: str) -> None:
        placement = self._job.placement
        size = placement.processes
        store: Any = dist
        mesh = Mesh(store.FileStore(meeting, size), self._rank, size, host="127.0.0.1")
        device, direct = self._job.devices.direct_device(self._rank), None
        if device is not None:
            direct = NcclDirect(
                store.FileStore(f"{meeting}-nccl", placement.ranks), self._rank, placement.ranks, device
            )
        self._plans = Plans(placement, self._rank, mesh, direct=direct)
        self._orders.send(Kind.JOINED)

    def _add_plan(self, frame: Frame) -> None:
        plan, window, seed = pickle.loads(frame.payload)
        self._plans.add(frame.number, plan, window, checked=True)
        self._seeds[frame.number] = seed, window

    def _run_steps(self, plan: int, number: int, listened: bool, stays: bool) -> None:
        """Run a step and, where home will likely want the same again, begin the next ones without being told.

        A step that does not come is ended by home as void.
        """
        running = self._running_of(plan, listened)
        own = running.own
        try:
            self._run_step(running, plan, number)
            while stays and own.calls:
                number += 1
                self._run_step(running, plan, number)
        except VoidError:
            self._report(own)
        except CancelledError:
            raise SystemExit from None
        except BaseException as error:  # noqa: BLE001 - likewise
            self._moving = False
            self._fail(error)
        self._moving = False

    def _running_of(self, plan: int, listened: bool) -> RankStep:
        own, running = self._plans[plan], self._running
        if running is None or running.own is not own:
            tell = self._tell_ended if listened else None
            see, told = partial(self._tell_seen, plan), self._seen.told(plan)
            running = RankStep(own, self._workers, self._is_over, self._note, see, told, tell, self._look)
            self._running = running
        return running

    def _run_step(self, running: RankStep, plan: int, number: int) -> None:
        self._moving = True
        if self._over:
            raise SystemExit
        seed, window = self._seeds[plan]
        running.begin(Step(running.own.program, self._job.binding, (), number, seed, window))
        running.run_calls()
        running.end()
        self._report(running.own)

    def _report(self, own: RankPlan) -> None:
        """Let home know of the end of a step, if this rank is the last of those whose end it must hear of."""
        if self._rank in own.reporters and self._ended.is_last():
            self._orders.send(Kind.ENDED)

    def _tell_seen(self, plan: int, step: Step) -> None:
        if news := self._seen.since_last(plan, step):
            self._orders.send(Kind.SEEN, plan, news)

    def _note(self, call: int) -> None:
        """Note which call is about to run, -1 for none: the user's code is not ended in the middle."""
        self._moving = call < 0
        self._board.note_call(self._rank, call)
        if self._over:
            raise SystemExit

    def _is_over(self) -> bool:
        return self._over

    def _tell_built(self, event: ReplicaBuilt) -> None:
        self._orders.send(Kind.BUILT, 0, pickle.dumps(event))

    def _tell_ended(self, event: CallEnded) -> None:
        self._orders.send(Kind.EVENT, 0, pickle.dumps(event))

    def _look(self, peer: int, call: int) -> None:
        if peer == self._job.placement.home:
            self._orders.send(Kind.LOOK, call)

    def _fail(self, error: BaseException) -> NoReturn:
        """Tell home what went wrong and stay, so that nobody takes this rank for the one that was lost."""
        if not self._over:
            lost = isinstance(error, RuntimeError)  # the mesh's: what users raise comes as a RunError
            self._orders.send(Kind.BROKEN if lost else Kind.FAILED, 0, pack_error(error))
            while self._orders.receive() is not None and not self._over:
                pass
        raise SystemExit

    def _hear_alarms(self) -> None:
        while (frame := self._alarms.receive()) is not None:
            if frame.kind is Kind.PING:
                self._alarms.send(Kind.PONG)
            elif frame.kind is Kind.OVER:
                break
        self._over = True
        if self._moving:  # it may be waiting for a message that never comes
            _leave(0)


def _die_with(parent: int) -> None:
    """Have the system end this process when the one that forked it ends, however that happens."""
    with suppress(Exception):
        ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _leave(status: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(status)
