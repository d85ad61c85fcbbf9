"""The seed's graph by hand through Ray Compiled Graphs: the calls of one step, compiled once, with fixed channels.

The actors are those of :mod:`benchmarks.by_hand.ray_actors`, and so is the wiring.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import ray
from numpy.typing import NDArray
from ray.dag import InputNode, MultiOutputNode

from benchmarks.by_hand.ray_actors import HALVES, POLICIES, POLICY_ROWS, SCORERS, end_actors, start_actors

Array = NDArray[Any]
Model = Callable[..., Array]
BATCHES = 4
PATIENCE = 180
"""Seconds: in the first step Ray loads torch in every actor, which can take a minute on two cores."""


class RayCompiledProgram:
    """26 actors and the compiled graph of one step; use it in a ``with`` statement, after ``ray.init``."""

    def __init__(self, models: Mapping[str, Model]) -> None:
        self._actors = start_actors(models)
        self._step = self._compile()

    def run(self, prompts: Array) -> dict[str, Array]:
        """Run one step on (16, width) prompts."""
        rows = [prompts[batch * POLICY_ROWS : (batch + 1) * POLICY_ROWS] for batch in range(BATCHES)]
        made = ray.get(self._step.execute(*rows), timeout=PATIENCE)
        return {"value": np.concatenate(made[:SCORERS]), "reward": np.concatenate(made[SCORERS:])}

    def __enter__(self) -> RayCompiledProgram:
        return self

    def __exit__(self, *error: object) -> None:
        self._step.teardown()
        end_actors(self._actors)

    def _compile(self) -> Any:
        actors = self._actors
        values, rewards = [], []
        with InputNode() as prompts:
            for batch in range(BATCHES):
                for at, half in enumerate(
                    actors["policy"][batch % POLICIES].run_in_halves.bind(prompts[batch])
                ):
                    scorer = batch * HALVES + at
                    scores = actors["reference"][scorer].run.bind(half)
                    values.append(actors["value"][scorer].run.bind(half))
                    rewards.append(actors["reward"][scorer].run.bind(half, scores))
            step = MultiOutputNode(values + rewards)
        return step.experimental_compile()
