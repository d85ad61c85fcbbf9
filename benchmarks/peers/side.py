"""What each side of a comparison with a peer is: brought up in a process of its own, it turns prompts into rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from benchmarks.apart import Step
from benchmarks.peers.jobs import IDLE, JOBS, SLEPT, TOLD, Array

Run = Callable[[Array], Mapping[str, Any]]
"""Runs a step on (samples, width) prompts and returns the rows of the job's outputs."""
Bring = Callable[[str, str], AbstractContextManager[Run]]
"""Brings a side up for the job of this name, whose workers tell into this folder. It must be picklable."""


@contextmanager
def bring_steps(bring: Bring, job_name: str, folder: str) -> Iterator[Mapping[str, Step]]:
    """Bring a side up and yield the steps that it can be told to run.

    Raises:
        RuntimeError: it returns other rows than it was given.
    """
    job = JOBS[job_name]
    with bring(job_name, folder) as run:
        prompts = {"idle": job.prompts(IDLE), "slept": job.prompts(SLEPT), "told": job.prompts(TOLD)}
        made = run(prompts["idle"])
        for output in job.outputs:
            if not np.array_equal(np.asarray(made[output]), prompts["idle"]):
                raise RuntimeError(f"other rows of {output} came back than were given")
        yield {kind: _step(run, rows) for kind, rows in prompts.items()}


def _step(run: Run, prompts: Array) -> Step:
    return lambda: run(prompts)
