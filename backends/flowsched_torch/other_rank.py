"""A rank beside rank 0 of those that run a session together."""

from __future__ import annotations

import pickle

from flowsched.backend import Deployment, Outputs, Step, pack_error
from flowsched.errors import SessionError
from flowsched.events import CallEnded, Event
from flowsched_torch.agreeing import Decision, RankAgreement
from flowsched_torch.control import Frame, Kind
from flowsched_torch.meeting import Meeting, connect_home
from flowsched_torch.seen import News
from flowsched_torch.steps import CancelledError, RankStep
from flowsched_torch.together import STEP, Together, Ways, refuse_others, say_of
from flowsched_torch.watching import RankWatch

_SILENCE = 1.25  # times the time after which home gives up a rank; it asks four times as often
_LAST_WORD = 5.0  # seconds that home is waited for where its end takes along what ranks find each other by


class OtherRank(Together):
    """Any rank but rank 0."""

    def __init__(self, deployment: Deployment, meeting: Meeting, ways: Ways) -> None:
        super().__init__(deployment, meeting, ways)
        self._seen = News()
        self._listened = False
        self._orders, alarms, host, described = connect_home(meeting, ways.timeout)
        alarms.limit(_SILENCE * ways.timeout)
        self._watch: RankWatch = RankWatch(alarms, self._lost, self._cut)
        self._agreement = RankAgreement(self._orders, self._watch)
        try:
            refuse_others(self._described(), described, meeting.rank)
            self._listened = True
            self._build()
            self._orders.send(Kind.READY)
            self._receive(Kind.JOIN)
            self._join(host)
            self._orders.send(Kind.JOINED)
            self._end_telling()
            self._receive(Kind.DONE)
        except BaseException as error:  # noqa: BLE001 - it is raised, or what caused it is
            self._teller.end()
            try:
                self._raise_cause(error)
            finally:
                self.close()

    def refuse(self, error: Exception) -> None:
        """Let no rank begin the next step, and wait until home comes to it."""
        try:
            refusal = self._agreement.decide(None, error).refusal
        except BaseException as lost:  # noqa: BLE001 - it is raised, or what caused it is
            self._raise_cause(lost)
        if refusal is not None and (type(refusal), str(refusal)) != (type(error), str(error)):
            raise refusal

    def _decide(self, samples: int | None) -> Decision:
        return self._agreement.decide(samples)

    def _run(self, step: Step) -> Outputs:
        frame = self._receive(Kind.STEP)
        number, plan, settings = self._know(step)
        theirs, listened, plan_there, settings_there = STEP.unpack(frame.payload)
        if plan != plan_there:
            raise SessionError(
                f"rank {self._meeting.rank} runs step {step.number} by the plan with hash {plan.hex()[:12]}, and "
                f"rank 0 by that with hash {plan_there.hex()[:12]}. All ranks must run the same plans in the "
                "same order"
            )
        if (number, step.number, settings) != (frame.number, theirs, settings_there):
            raise SessionError(
                f"step {step.number} of rank {self._meeting.rank} is not step {theirs} of rank 0: seed, "
                "max_in_flight or the plans before differ. All ranks must start the same session and run the "
                "same steps"
            )
        self._listened = listened
        part = self._part_of(number, step, listened or self._deployment.observer is not None)
        part.run_calls()
        part.end()
        self._orders.send(Kind.ENDED, number, self._seen.since_last(number, step))
        outputs = self._outputs(step, part)
        self._receive(Kind.DONE)
        return outputs

    def _outputs(self, step: Step, part: RankStep) -> Outputs:
        graph = step.plan.graph
        if self._ways.outputs == "first":
            here = f"the outputs are at rank 0, and this is rank {self._meeting.rank}"
            return Outputs.elsewhere(graph.outputs, f"{here}. Give outputs_on='all' to have them here")
        return step.collect(part.take_spread())

    def _forget(self, number: int) -> None:
        self._seen.forget(number)

    def _receive(self, kind: Kind) -> Frame:
        """Wait for what home must say next."""
        self._raise_if_over()
        frame = self._orders.receive()
        if frame is None or self._watch.is_over():
            self._watch.wait(_LAST_WORD)
            raise CancelledError
        if frame.kind is not kind:
            raise SessionError(
                f"rank 0 says {frame.kind.name} where rank {self._meeting.rank} waits for {kind.name}. All "
                "ranks must run the same steps in the same order"
            )
        return frame

    def _tell(self, event: Event) -> None:
        self._teller.tell(event)
        if self._listened:
            self._orders.send(
                Kind.EVENT if isinstance(event, CallEnded) else Kind.BUILT, 0, pickle.dumps(event)
            )

    def _tell_failure(self, error: BaseException) -> None:
        said = say_of(error, self._meeting.rank)
        self._orders.send(Kind.FAILED, 0, pack_error(said))
        self._watch.fail(said)

    def _cut(self) -> None:
        super()._cut()
        self._orders.cut()

    def _tear_down(self) -> None:
        if not self._watch.is_over():
            self._orders.send(Kind.OVER)
            if not self._meeting.is_shared:
                self._watch.wait(_LAST_WORD)
        self._leave_mesh()
        self._watch.end()
        self._orders.close()
