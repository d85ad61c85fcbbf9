"""Ranks that all run the same program, each its part of every step: what home and the others have in common."""

from __future__ import annotations

import hashlib
import json
import struct
import threading
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from flowsched.backend import Deployment, Outputs, Running, Step
from flowsched.errors import ReplicaLostError, SessionError
from flowsched.events import Event
from flowsched.programs import Placement
from flowsched_torch.agreeing import Decision
from flowsched_torch.devices import Devices
from flowsched_torch.direct import NcclDirect
from flowsched_torch.losses import SEE_WHY, lost_replica, served_replicas
from flowsched_torch.meeting import Meeting
from flowsched_torch.mesh import Mesh
from flowsched_torch.plans import PlanNumbers, Plans
from flowsched_torch.replicas import build_replicas
from flowsched_torch.steps import CancelledError, RankStep, Workers
from flowsched_torch.telling import Teller
from flowsched_torch.watching import Watch

STEP = struct.Struct("<Q?32s16s")  # number of the step, whether home listens, hashes of plan and of settings
Where = Literal["first", "all"]


@dataclass(frozen=True)
class Ways:
    """How ranks that run the same program work together.

    Attributes:
        placement: on which rank each replica is.
        devices: what replicas are given.
        local_rank: of this process among those of its machine.
        inputs, outputs: whether rank 0 alone holds them or all ranks.
        host: at home, the address of this machine that the others reach.
        timeout: seconds after which a rank that neither answers nor dies is given up.
        build_timeout: seconds in which all replicas must be built; None for as long as that takes.
    """

    placement: Placement
    devices: Devices
    local_rank: int
    inputs: Where
    outputs: Where
    host: str
    timeout: float
    build_timeout: float | None


class Together(Running):
    """One rank of those that run a session together."""

    _watch: Watch

    def __init__(self, deployment: Deployment, meeting: Meeting, ways: Ways) -> None:
        self._deployment, self._meeting, self._ways = deployment, meeting, ways
        self._turn = threading.RLock()
        self._closed = self._is_torn_down = False
        self._step: Step | None = None
        self._numbers = PlanNumbers()
        self._workers: Workers = {}
        self._mesh: Mesh | None = None
        self._direct: NcclDirect | None = None
        self._plans: Plans
        self._teller = Teller(deployment.observer, lambda: None)

    def agree(self, samples: int | None) -> int:
        """Return the number of samples of the next step, once all ranks begin it.

        Raises:
            Exception: what the first rank that does not has refused it with; all raise it, and the session goes on.
            RunError: a rank has failed meanwhile.
            SessionError: ranks would begin steps of other numbers of samples.
        """
        try:
            decision = self._decide(samples)
        except BaseException as error:  # noqa: BLE001 - it is raised, or what caused it is
            self._raise_cause(error)
        if decision.refusal is not None:
            raise decision.refusal
        return decision.samples

    def fail(self, error: Exception) -> None:
        """End the session on all ranks: this one does not run the step that it has agreed on."""
        if not self._watch.is_over():
            self._tell_failure(error)

    def run(self, step: Step) -> Outputs:
        """Execute this rank's part of one step; see :meth:`flowsched.backend.Running.run`.

        The rows of the outputs are at rank 0, or on all ranks; elsewhere, reading them raises.
        """
        with self._turn:
            if self._closed:
                raise SessionError(f"the session was closed before step {step.number} began")
            self._step = step
            self._teller = Teller(self._deployment.observer, lambda: None)
            try:
                outputs = self._run(step)
                self._end_telling()
                return outputs
            except BaseException as error:  # noqa: BLE001 - it is raised, or what caused it is
                self._teller.end()
                self._raise_cause(error)
            finally:
                self._step = None

    def close(self) -> None:
        """End this rank's part of the session."""
        self._closed = True
        step = self._step
        if step is not None:
            self._watch.fail(SessionError(f"the session was closed in the middle of step {step.number}"))
        with self._turn:
            if self._is_torn_down:
                return
            self._is_torn_down = True
            self._workers = {}
            self._tear_down()

    def _leave_mesh(self) -> None:
        if self._mesh is not None:
            self._plans.close()
            self._mesh = None

    @abstractmethod
    def _decide(self, samples: int | None) -> Decision:
        """Begin the next step with all others, or with none."""

    @abstractmethod
    def _run(self, step: Step) -> Outputs:
        """Run the step, once it is known to be the same on all ranks."""

    @abstractmethod
    def _tell_failure(self, error: BaseException) -> None:
        """Tell the other ranks of a failure of this one."""

    @abstractmethod
    def _tear_down(self) -> None:
        """End the connections and threads of this rank."""

    @abstractmethod
    def _tell(self, event: Event) -> None:
        """Tell of an event on this rank."""

    def _build(self) -> None:
        served: dict[str, list[int]] = {}
        for node, replica in self._served(self._meeting.rank):
            served.setdefault(node, []).append(replica)
        deployment, ways = self._deployment, self._ways
        self._workers = build_replicas(
            deployment.graph,
            deployment.binding,
            served,
            lambda node, replica: ways.devices.device_of(node, replica, ways.local_rank),
            self._tell,
            lambda _: None,
        )
        self._raise_if_over()

    def _join(self, host: str) -> None:
        meeting = self._meeting
        mesh = Mesh(meeting.store, meeting.rank, meeting.size, host=host, is_cuttable=True)
        device, direct = self._ways.devices.direct_device(self._ways.local_rank), None
        if device is not None:
            direct = NcclDirect(meeting.store, meeting.rank, meeting.size, device)
        self._direct = direct
        self._plans = Plans(
            self._ways.placement,
            meeting.rank,
            mesh,
            inputs_everywhere=self._ways.inputs == "all",
            outputs_everywhere=self._ways.outputs == "all",
            direct=direct,
        )
        self._mesh = mesh

    def _know(self, step: Step) -> tuple[int, bytes, bytes]:
        """Return what all ranks call the plan, its hash, and that of what else must be the same."""
        window = tuple(step.window)
        settings = hashlib.sha256(repr((window, step.seed)).encode()).digest()[:16]
        number, is_new, forgotten = self._numbers.find((step.plan.hash, settings))
        if is_new:
            self._plans.add(number, step.program, window, checked=False)
        if forgotten is not None:
            self._plans.forget(forgotten)
            self._forget(forgotten)
        return number, bytes.fromhex(step.plan.hash), settings

    def _forget(self, number: int) -> None:
        """Let go of what is known of a plan."""

    def _part_of(self, number: int, step: Step, listened: bool) -> RankStep:
        """Begin this rank's part of a step; its own observer and home's are told of the calls."""
        is_over, tell = self._watch.is_over, self._tell if listened else None
        part = RankStep(self._plans[number], self._workers, is_over, _ignore, _ignore, {}, tell)
        part.begin(step)
        return part

    def _end_telling(self) -> None:
        self._teller.end()
        while self._teller.is_busy(0.01):
            self._raise_if_over()
        self._teller.raise_if_any()

    def _raise_if_over(self) -> None:
        if self._watch.failure is not None:
            raise CancelledError

    def _raise_cause(self, error: BaseException) -> NoReturn:
        """Raise the first failure of any rank; ``error`` is what this one has met with.

        Raises:
            BaseException: that failure.
        """
        if isinstance(error, CancelledError) or (self._watch.is_over() and isinstance(error, Exception)):
            cause = self._watch.failure or self._watch.closing
            if cause is None and self._closed:
                cause = SessionError("the session was closed before the next step began")
        elif isinstance(error, RuntimeError) and error is not self._teller.error:
            # gloo's: what workers raise comes as a RunError, and what an observer raises is known
            cause = self._watch.find_cause(error)
        else:
            self._tell_failure(error)
            raise error
        raise cause or error

    def _lost(self, rank: int, why: str) -> ReplicaLostError:
        return lost_replica(self._served(rank), None, rank, self._step, f"rank {rank}: {why}", SEE_WHY)

    def _served(self, rank: int) -> list[tuple[str, int]]:
        return served_replicas(self._ways.placement, self._deployment.replicas, rank)

    def _cut(self) -> None:
        if self._mesh is not None:
            self._mesh.cut()
        if self._direct is not None:
            self._direct.close()

    def _described(self) -> dict[str, str]:
        """Return what must be the same on all ranks, by what it is called."""
        graph, ways = self._deployment.graph, self._ways
        return {
            "the hash of the graph": _hash(graph.to_dict()),
            "the hash of what is built": _hash(dict(self._deployment.replicas)),
            "the hash of the placement": _hash(
                {name: list(own) for name, own in ways.placement.replicas.items()}
            ),
            "inputs_on=": ways.inputs,
            "outputs_on=": ways.outputs,
        }


def refuse_others(own: Mapping[str, str], home: Mapping[str, str], rank: int) -> None:
    """Refuse a session that is not the same here as at rank 0.

    Raises:
        SessionError: it names what differs, and both.
    """
    for what, here in own.items():
        if home.get(what) != here:
            raise SessionError(
                f"{what} is {here} on rank {rank} and {home.get(what)} on rank 0. All ranks must start the same "
                "sessions in the same order"
            )


def _ignore(_: object) -> None:
    """Take no note: where ranks run the same program, what they have seen is told when they have ended."""


def say_of(error: BaseException, rank: int) -> Exception:
    """Return what others are told of a failure: the error itself, or that the rank was interrupted."""
    if isinstance(error, Exception):
        return error
    return SessionError(f"rank {rank} was interrupted by {type(error).__name__}")


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
