"""The seed's graph by hand: one ``ThreadPoolExecutor(1)`` for each replica, chained by callbacks of futures.

Everything is wired for 16 samples: 2 policy replicas make 2 batches of 4 each; each half of these goes to one of
8 reference and 8 value replicas; a reference replica hands its half on to the reward replica of the same index.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Model = Callable[..., Array]

POLICIES, POLICY_ROWS = 2, 4
SCORERS, SCORER_ROWS = 8, 2


class ExecutorProgram:
    """26 executors of one thread that run the four models; use it in a ``with`` statement."""

    def __init__(self, models: Mapping[str, Model]) -> None:
        self._models = models
        self._policy, self._reference, self._value, self._reward = (
            [ThreadPoolExecutor(1) for _ in range(replicas)]
            for replicas in (POLICIES, SCORERS, SCORERS, SCORERS)
        )

    def run(self, prompts: Array) -> dict[str, Array]:
        """Run one step on (16, width) prompts."""
        step = _Step(self)
        for batch in range(len(prompts) // POLICY_ROWS):
            rows = prompts[batch * POLICY_ROWS : (batch + 1) * POLICY_ROWS]
            answers = self.submit_policy(batch, rows)
            answers.add_done_callback(partial(step.divide, batch))
        error = step.ended.get()
        if error is not None:
            raise error
        return {"value": np.concatenate(step.values), "reward": np.concatenate(step.rewards)}

    def submit_policy(self, batch: int, prompts: Array) -> Future[Array]:
        """Start one call of 4 rows."""
        return self._policy[batch % POLICIES].submit(self._models["policy"], prompts)

    def submit_reference(self, scorer: int, answers: Array) -> Future[Array]:
        """Start one call of 2 rows, as do the next two."""
        return self._reference[scorer].submit(self._models["reference"], answers)

    def submit_value(self, scorer: int, answers: Array) -> Future[Array]:
        return self._value[scorer].submit(self._models["value"], answers)

    def submit_reward(self, scorer: int, answers: Array, scores: Array) -> Future[Array]:
        return self._reward[scorer].submit(self._models["reward"], answers, scores)

    def __enter__(self) -> ExecutorProgram:
        return self

    def __exit__(self, *error: object) -> None:
        for executor in (*self._policy, *self._reference, *self._value, *self._reward):
            executor.shutdown()


class _Step:
    """One step: what each future leads to, and what comes back.

    An exception inside a callback would only be logged, so that every callback is :meth:`guarded`.
    """

    def __init__(self, program: ExecutorProgram) -> None:
        self._program = program
        self.values: list[Array] = [np.empty(0)] * SCORERS
        self.rewards: list[Array] = [np.empty(0)] * SCORERS
        self.ended: SimpleQueue[BaseException | None] = SimpleQueue()
        self._left = 2 * SCORERS
        self._lock = threading.Lock()

    def divide(self, batch: int, made: Future[Array]) -> None:
        """Give the halves of a policy batch to two reference and two value replicas."""
        with _Reporting(self.ended):
            answers = made.result()
            scorer = batch * (POLICY_ROWS // SCORER_ROWS)
            for start in range(0, POLICY_ROWS, SCORER_ROWS):
                half = answers[start : start + SCORER_ROWS]
                scores = self._program.submit_reference(scorer, half)
                scores.add_done_callback(partial(self.reward, scorer, half))
                values = self._program.submit_value(scorer, half)
                values.add_done_callback(partial(self.keep, self.values, scorer))
                scorer += 1

    def reward(self, scorer: int, answers: Array, made: Future[Array]) -> None:
        """Give answers and their reference scores to a reward replica."""
        with _Reporting(self.ended):
            rewards = self._program.submit_reward(scorer, answers, made.result())
            rewards.add_done_callback(partial(self.keep, self.rewards, scorer))

    def keep(self, kept: list[Array], scorer: int, made: Future[Array]) -> None:
        """Keep a result; the last one wakes the caller."""
        with _Reporting(self.ended):
            kept[scorer] = made.result()
            with self._lock:
                self._left -= 1
                left = self._left
            if not left:
                self.ended.put(None)


class _Reporting:
    """Hands an exception to whoever waits for the end of the step."""

    def __init__(self, ended: SimpleQueue[BaseException | None]) -> None:
        self._ended = ended

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if error is not None:
            self._ended.put(error)
        return True
