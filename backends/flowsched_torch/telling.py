"""Events of several ranks in an order in which things can have happened."""

from __future__ import annotations

from flowsched.backend import Step
from flowsched.events import CallEnded, Observer


class InOrder:
    """Tells an observer of calls that ranks say have ended: none before those that it reads.

    What two ranks say arrives on two connections, so that a reader's end may be heard before its producer's.

    Args:
        step: the step.
        observer: who is told; None for nobody.
    """

    def __init__(self, step: Step, observer: Observer | None) -> None:
        self._step, self._observer = step, observer
        self._told: set[int] = set()
        self._early: dict[int, CallEnded] = {}
        self._waiting: dict[int, list[int]] = {}
        self._numbers: dict[tuple[str, int, int], int] = {}
        if observer is not None:
            table, nodes = step.plan.table, step.plan.graph.nodes
            places = zip(table.node.tolist(), table.replica.tolist(), table.position.tolist(), strict=True)
            self._numbers = {
                (nodes[node].name, replica, position): call
                for call, (node, replica, position) in enumerate(places)
            }

    def tell(self, event: CallEnded) -> None:
        """Tell of a call, and of those that waited for it, or keep it until what it reads has been told."""
        if self._observer is None:
            return
        ready = [self._numbers[event.node, event.replica, event.position]]
        self._early[ready[0]] = event
        while ready:
            call = ready.pop()
            missing = next(
                (made for made in self._step.program.links[call].producers if made not in self._told), None
            )
            if missing is not None:
                self._waiting.setdefault(missing, []).append(call)
                continue
            self._observer(self._early.pop(call))
            self._told.add(call)
            ready += self._waiting.pop(call, [])
