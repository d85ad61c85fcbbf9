"""What ranks have seen of outputs, brought together at home; what is as in the last step does not travel again."""

from __future__ import annotations

import pickle
from collections.abc import Mapping

from flowsched.backend import Seen, Step


class News:
    """On a rank: what it has seen, by the number of the plan."""

    def __init__(self) -> None:
        self._told: dict[int, dict[str, Seen]] = {}

    def told(self, plan: int) -> dict[str, Seen]:
        """Return what was told of a plan."""
        return self._told.setdefault(plan, {})

    def since_last(self, plan: int, step: Step) -> bytes:
        """Return what was seen in a step, as bytes; none where it is as it was told of the plan before."""
        told = self.told(plan)
        news = {name: seen for name, seen in step.seen().items() if told.get(name) != seen}
        if not news:
            return b""
        told.update(news)
        return pickle.dumps(news, 5)

    def forget(self, plan: int) -> None:
        """Let go of a plan."""
        self._told.pop(plan, None)


class SeenByPlan:
    """At home: what all ranks have seen, by the number of the plan."""

    def __init__(self) -> None:
        self._told: dict[int, dict[int, dict[str, Seen]]] = {}
        self._met: dict[int, Mapping[str, Seen]] = {}

    def hear(self, plan: int, rank: int, news: bytes) -> None:
        """Take note of what a rank has seen, as :meth:`News.since_last` returns it."""
        self._told.setdefault(plan, {}).setdefault(rank, {}).update(pickle.loads(news))
        self._met.pop(plan, None)

    def meet(self, plan: int, step: Step) -> None:
        """Let a step know of what all ranks have seen in it.

        Raises:
            OutputError: calls of a node made different columns on two ranks.
        """
        if plan in self._met:
            step.meet(self._met[plan])
            return
        for seen in self._told.get(plan, {}).values():
            step.meet(seen)
        self._met[plan] = step.seen()

    def forget(self, plan: int) -> None:
        """Let go of a plan."""
        self._told.pop(plan, None)
        self._met.pop(plan, None)
