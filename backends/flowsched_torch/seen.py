"""What ranks have seen of outputs, brought together at home; what is as in the last step does not travel again."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

from flowsched.backend import Seen, Step


class News:
    """On a rank: what it has seen, by the number of the plan."""

    def __init__(self) -> None:
        self._told: dict[int, dict[str, Seen]] = {}

    def since_last(self, plan: int, step: Step) -> bytes:
        """Return what was seen in a step, as bytes; none where it is as in the plan's last step."""
        seen = step.seen()
        if self._told.get(plan) == seen:
            return b""
        self._told[plan] = seen
        return pickle.dumps(seen, 5)

    def forget(self, plan: int) -> None:
        """Let go of a plan."""
        self._told.pop(plan, None)


class SeenByPlan:
    """At home: what all ranks have seen, by the number of the plan."""

    def __init__(self) -> None:
        self._told: dict[int, list[dict[str, Seen]]] = {}
        self._met: dict[int, dict[str, Seen]] = {}

    def meet(self, plan: int, step: Step, news: Sequence[bytes]) -> None:
        """Let a step know of what the ranks have seen in it.

        Args:
            plan: number of the plan.
            step: the step.
            news: what each rank says, as :meth:`News.since_last` returns it.

        Raises:
            OutputError: calls of a node made different columns on two ranks.
        """
        told = self._told.setdefault(plan, [{} for _ in news])
        if not any(news) and plan in self._met:
            step.meet(self._met[plan])
            return
        for rank, packed in enumerate(news):
            if packed:
                told[rank] = pickle.loads(packed)
            step.meet(told[rank])
        self._met[plan] = step.seen()

    def forget(self, plan: int) -> None:
        """Let go of a plan."""
        self._told.pop(plan, None)
        self._met.pop(plan, None)
