"""Plans that the actors have learnt, and what the driver keeps of each."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import ray

from flowsched.backend import Step
from flowsched.graph.topology import topological_order
from flowsched_ray.edge import count_bytes
from flowsched_ray.replicas import Replicas
from flowsched_ray.submission import Submission

_KEPT_PLANS = 16


class Lesson:
    """A plan that the actors have learnt.

    Attributes:
        plan: the plan.
        key: its key in the actors.
        ref: the plan and the session's seed, in the object store.
        order: indices of the nodes, producers first.
        calls: by node, how many calls it has.
        rows: by node, the rows that all its calls make.
        most_rows: by node, the most rows that one of them makes.
        submission: the plan as it was last submitted, and for which nodes signals carry rows in that.
    """

    def __init__(self, key: int, step: Step) -> None:
        program, self.plan, self.key = step.program, step.plan, key
        self.ref: Any = ray.put((step.plan, step.seed))
        self.order = topological_order(self.plan.graph)
        self.calls = [len(own) for own in program.numbers]
        made = [[program.links[call].made for call in own] for own in program.numbers]
        self.rows, self.most_rows = [sum(own) for own in made], [max(own, default=0) for own in made]
        self.submission: tuple[frozenset[int], Submission] | None = None

    def guess_row_bytes(self, step: Step) -> list[float]:
        """Return, by node, the bytes of a row that it makes, as though it made rows like those of its inputs."""
        graph = self.plan.graph
        known = {
            name: count_bytes(batch) / max(1, self.plan.samples)
            for name, batch in zip(graph.sources, step.inputs, strict=True)
        }
        for index in self.order:
            node = graph.nodes[index]
            known[node.name] = max(known[name] for name in node.inputs)
        return [known[node.name] for node in graph]


class Lessons:
    """The latest plans, each taught to all actors once."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._lessons: OrderedDict[int, Lesson] = OrderedDict()
        self._taught = 0

    def teach(self, step: Step) -> Lesson:
        """Return the lesson of the step's plan; actors that have not learnt it do so before their next call."""
        lesson = self._lessons.get(id(step.plan))
        if lesson is not None:
            self._lessons.move_to_end(id(step.plan))
            return lesson
        forgotten = None
        if len(self._lessons) >= _KEPT_PLANS:
            forgotten = self._lessons.popitem(last=False)[1].key
        lesson = self._lessons[id(step.plan)] = Lesson(self._taught, step)
        self._taught += 1
        for replica in self._replicas.all:
            replica.actor.learn.remote(lesson.key, lesson.ref, forgotten)
        return lesson

    def clear(self) -> None:
        """Let go of all plans."""
        self._lessons.clear()
