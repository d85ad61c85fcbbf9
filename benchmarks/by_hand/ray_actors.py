"""The seed's graph by hand: one Ray actor for each replica, chained by ObjectRefs.

Everything is wired for 16 samples. A policy call returns its two halves as two objects, so that each consumer
fetches only its rows; all 28 calls of a step are submitted at once, and nothing waits before the driver reads the
results. Rows are numpy arrays, and actors ask for no processor, so that 26 of them fit on any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import ray
from numpy.typing import NDArray

Array = NDArray[Any]
Model = Callable[..., Array]

POLICIES, POLICY_ROWS = 2, 4
SCORERS, SCORER_ROWS = 8, 2
HALVES = POLICY_ROWS // SCORER_ROWS


class Replica:
    """What each actor runs."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def run(self, *batches: Array) -> Array:
        """Run one call."""
        return self._model(*batches)

    @ray.method(num_returns=HALVES)
    def run_in_halves(self, *batches: Array) -> tuple[Array, ...]:
        """Run one call and return its rows as one array a consumer."""
        made = self._model(*batches)
        return tuple(made[start : start + SCORER_ROWS] for start in range(0, POLICY_ROWS, SCORER_ROWS))

    def ready(self) -> None:
        """Return once the actor is up."""


class RayActorProgram:
    """26 actors that run the four models; use it in a ``with`` statement, after ``ray.init``."""

    def __init__(self, models: Mapping[str, Model]) -> None:
        self._actors = start_actors(models)
        self._policy = [replica.run_in_halves for replica in self._actors["policy"]]
        self._reference, self._value, self._reward = (
            [replica.run for replica in self._actors[name]] for name in ("reference", "value", "reward")
        )

    def run(self, prompts: Array) -> dict[str, Array]:
        """Run one step on (16, width) prompts."""
        values, rewards = [], []
        for batch in range(len(prompts) // POLICY_ROWS):
            rows = prompts[batch * POLICY_ROWS : (batch + 1) * POLICY_ROWS]
            for at, half in enumerate(self._policy[batch % POLICIES].remote(rows)):
                scorer = batch * HALVES + at
                scores = self._reference[scorer].remote(half)
                values.append(self._value[scorer].remote(half))
                rewards.append(self._reward[scorer].remote(half, scores))
        made = ray.get(values + rewards)
        return {"value": np.concatenate(made[:SCORERS]), "reward": np.concatenate(made[SCORERS:])}

    def __enter__(self) -> RayActorProgram:
        return self

    def __exit__(self, *error: object) -> None:
        end_actors(self._actors)


def start_actors(models: Mapping[str, Model]) -> dict[str, list[Any]]:
    """Return the handles of 26 actors, which are up."""
    actor: Any = ray.remote(num_cpus=0)(Replica)
    counts = {"policy": POLICIES, "reference": SCORERS, "value": SCORERS, "reward": SCORERS}
    actors = {name: [actor.remote(models[name]) for _ in range(count)] for name, count in counts.items()}
    ray.get([replica.ready.remote() for own in actors.values() for replica in own])
    return actors


def end_actors(actors: Mapping[str, list[Any]]) -> None:
    """End these actors at once."""
    for own in actors.values():
        for replica in own:
            ray.kill(replica)
