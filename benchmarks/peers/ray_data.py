"""The jobs on Ray Data: a pipeline of actor pools.

A dataset is a chain: it can neither branch nor join, so that the seed's graph becomes policy, reference, value,
reward, one after the other, over the same rows. A batch is made of one block, so that blocks are those of the first
node's batches. Ray Data starts the pools anew in every step.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.peers.jobs import JOBS, Array, Worker
from benchmarks.peers.side import Run

ROWS = "data"
"""The column that ``ray.data.from_numpy`` makes."""


class Stage:
    """A worker on the column that holds the rows."""

    def __init__(self, node: str, costs: tuple[float, float], folder: str) -> None:
        self._worker = Worker(node, costs, folder)

    def __call__(self, batch: dict[str, Array]) -> dict[str, Array]:
        """Run one call."""
        return {ROWS: self._worker(batch[ROWS])}


@contextmanager
def bring_ray_data(job_name: str, folder: str) -> Iterator[Run]:
    """Start a Ray instance and yield what runs a step."""
    import ray

    from benchmarks.local_ray import local_ray

    job = JOBS[job_name]
    with local_ray(cpus=32):
        ray.data.DataContext.get_current().enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.WARNING)

        def run(prompts: Array) -> Mapping[str, Any]:
            first = next(iter(job.graph)).batch_size or len(prompts)
            blocks = [prompts[at : at + first] for at in range(0, len(prompts), first)]
            made: Any = ray.data.from_numpy(blocks)
            for node in job.graph:
                made = made.map_batches(
                    Stage,
                    fn_constructor_args=(node.name, job.costs[node.name], folder),
                    batch_size=node.batch_size,
                    compute=ray.data.ActorPoolStrategy(size=node.replicas),
                    num_cpus=0.5,
                )
            rows = np.stack([row[ROWS] for row in made.take_all()])
            in_order = rows[np.argsort(rows[:, 1])]
            return dict.fromkeys(job.outputs, in_order)

        yield run
