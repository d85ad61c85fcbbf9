"""Rank 0 of those that run a session together: it holds inputs and outputs and hears of every failure."""

from __future__ import annotations

import pickle

from flowsched.backend import Deployment, Outputs, Running, Step
from flowsched.events import CallEnded, Event, ReplicaBuilt
from flowsched_torch.agreeing import Decision, HomeAgreement
from flowsched_torch.building import Building
from flowsched_torch.control import Frame, Kind
from flowsched_torch.hub import Hub
from flowsched_torch.meeting import Meeting, connect_all
from flowsched_torch.seen import SeenByPlan
from flowsched_torch.steps import CancelledError
from flowsched_torch.telling import InOrder
from flowsched_torch.together import STEP, Together, Ways, say_of
from flowsched_torch.watching import HomeWatch


class HomeRank(Together):
    """Rank 0."""

    def __init__(self, deployment: Deployment, meeting: Meeting, ways: Ways) -> None:
        super().__init__(deployment, meeting, ways)
        self._seen = SeenByPlan()
        self._ended: InOrder | None = None
        self._building = Building(
            ways.placement,
            deployment.replicas,
            ways.build_timeout,
            lambda: self._watch.fail(self._building.error()),
        )
        orders, alarms = connect_all(meeting, ways.host, self._described(), ways.timeout)
        self._hub = Hub(orders, alarms, ways.timeout)
        self._watch: HomeWatch = HomeWatch(self._hub, self._lost, self._cut, self._hear_event)
        self._agreement = HomeAgreement(self._hub, self._watch, meeting.size - 1)
        self._building.begin()
        try:
            self._build()
            self._hear(Kind.READY)
            self._building.end()
            self._hub.order(Kind.JOIN)
            self._join(ways.host)
            self._hear(Kind.JOINED)
            self._end_telling()
            self._hub.order(Kind.DONE)
        except BaseException as error:  # noqa: BLE001 - it is raised, or what caused it is
            self._teller.end()
            self._building.end()
            try:
                self._raise_cause(error)
            finally:
                self.close()

    def _decide(self, samples: int | None) -> Decision:
        return self._agreement.decide(Running.agree(self, samples))

    def refuse(self, error: Exception) -> None:
        """Let no rank begin the next step."""
        self._agreement.refuse(error)

    def _run(self, step: Step) -> Outputs:
        self._raise_if_over()
        number, plan, settings = self._know(step)
        listened = self._deployment.observer is not None
        self._ended = InOrder(step, self._teller.tell) if listened else None
        self._hub.order(Kind.STEP, number, STEP.pack(step.number, listened, plan, settings))
        part = self._part_of(number, step, listened)
        part.run_calls()
        outputs = part.take_outputs()
        for rank, news in self._hear(Kind.ENDED).items():
            if news:
                self._seen.hear(number, rank, news)
        self._seen.meet(number, step)
        collected = step.collect(outputs)
        part.spread_outputs()
        self._hub.order(Kind.DONE, number)
        part.end()
        return collected

    def _forget(self, number: int) -> None:
        self._seen.forget(number)

    def _hear(self, kind: Kind) -> dict[int, bytes]:
        """Wait until all other ranks have said something, and return what came with it."""
        said: dict[int, bytes] = {}
        while len(said) < self._meeting.size - 1:
            heard = self._watch.heard.get()
            if heard is None or self._watch.is_over():
                raise CancelledError
            rank, frame = heard
            if frame.kind is kind:
                said[rank] = frame.payload
        return said

    def _hear_event(self, frame: Frame) -> None:
        self._tell(pickle.loads(frame.payload))

    def _tell(self, event: Event) -> None:
        if isinstance(event, ReplicaBuilt):
            self._building.note(event)
        if isinstance(event, CallEnded) and self._ended is not None:
            self._ended.hear(event)
        else:
            self._teller.tell(event)

    def _tell_failure(self, error: BaseException) -> None:
        self._watch.fail(say_of(error, 0))

    def _tear_down(self) -> None:
        self._leave_mesh()
        self._meeting = self._meeting.without_store()
        if not self._watch.is_over():
            self._hub.alarm(Kind.OVER)
        self._watch.end()
        self._hub.close()
