"""The seed's graph by hand: one thread and one ``queue.SimpleQueue`` for each replica, which feed each other.

Everything is wired for 16 samples: 2 policy replicas make 2 batches of 4 each; each half of these goes to one of
8 reference and 8 value replicas; a reference replica hands its half on to the reward replica of the same index.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Model = Callable[..., Array]
Task = tuple["Step", int, tuple[Array, ...]]
Replica = SimpleQueue[Task | None]

POLICIES, POLICY_ROWS = 2, 4
SCORERS, SCORER_ROWS = 8, 2


class Step:
    """What comes back from one step: 8 values and 8 rewards, or the first error."""

    def __init__(self) -> None:
        self.values: list[Array] = [np.empty(0)] * SCORERS
        self.rewards: list[Array] = [np.empty(0)] * SCORERS
        self.ended: SimpleQueue[BaseException | None] = SimpleQueue()
        self._left = 2 * SCORERS
        self._lock = threading.Lock()

    def finish_one(self) -> None:
        """Count one result; the last one wakes the caller."""
        with self._lock:
            self._left -= 1
            left = self._left
        if not left:
            self.ended.put(None)


class QueueProgram:
    """26 threads that run the four models; use it in a ``with`` statement."""

    def __init__(self, models: Mapping[str, Model]) -> None:
        self._models = models
        self._threads: list[threading.Thread] = []
        self._policy = self._start(POLICIES, self._run_policy)
        self._reference = self._start(SCORERS, self._run_reference)
        self._value = self._start(SCORERS, self._run_value)
        self._reward = self._start(SCORERS, self._run_reward)

    def run(self, prompts: Array) -> dict[str, Array]:
        """Run one step on (16, width) prompts."""
        step = Step()
        for batch in range(len(prompts) // POLICY_ROWS):
            rows = prompts[batch * POLICY_ROWS : (batch + 1) * POLICY_ROWS]
            self._policy[batch % POLICIES].put((step, batch, (rows,)))
        error = step.ended.get()
        if error is not None:
            raise error
        return {"value": np.concatenate(step.values), "reward": np.concatenate(step.rewards)}

    def __enter__(self) -> QueueProgram:
        return self

    def __exit__(self, *error: object) -> None:
        for replica in (*self._policy, *self._reference, *self._value, *self._reward):
            replica.put(None)
        for thread in self._threads:
            thread.join()

    def _start(self, replicas: int, work: Callable[[Step, int, tuple[Array, ...]], None]) -> list[Replica]:
        queues: list[Replica] = [SimpleQueue() for _ in range(replicas)]
        for queue in queues:
            thread = threading.Thread(target=_serve, args=(queue, work), daemon=True)
            thread.start()
            self._threads.append(thread)
        return queues

    def _run_policy(self, step: Step, batch: int, inputs: tuple[Array, ...]) -> None:
        answers = self._models["policy"](*inputs)
        scorer = batch * (POLICY_ROWS // SCORER_ROWS)
        for start in range(0, POLICY_ROWS, SCORER_ROWS):
            half = answers[start : start + SCORER_ROWS]
            self._reference[scorer].put((step, scorer, (half,)))
            self._value[scorer].put((step, scorer, (half,)))
            scorer += 1

    def _run_reference(self, step: Step, scorer: int, inputs: tuple[Array, ...]) -> None:
        scores = self._models["reference"](*inputs)
        self._reward[scorer].put((step, scorer, (*inputs, scores)))

    def _run_value(self, step: Step, scorer: int, inputs: tuple[Array, ...]) -> None:
        step.values[scorer] = self._models["value"](*inputs)
        step.finish_one()

    def _run_reward(self, step: Step, scorer: int, inputs: tuple[Array, ...]) -> None:
        step.rewards[scorer] = self._models["reward"](*inputs)
        step.finish_one()


def _serve(queue: Replica, work: Callable[[Step, int, tuple[Array, ...]], None]) -> None:
    while (task := queue.get()) is not None:
        try:
            work(*task)
        except BaseException as error:  # noqa: BLE001 - the caller of the step raises it
            task[0].ended.put(error)
