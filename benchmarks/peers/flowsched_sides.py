"""The jobs with flowsched, on any backend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import flowsched as fs
from benchmarks.peers.jobs import JOBS, Array, Worker
from benchmarks.peers.side import Run


@contextmanager
def bring_flowsched(backend: str, options: Mapping[str, Any], job_name: str, folder: str) -> Iterator[Run]:
    """Start a session and yield what runs a step with its outputs read."""
    job = JOBS[job_name]
    models = {name: partial(Worker, name, costs, folder) for name, costs in job.costs.items()}
    with _instance(backend), fs.start(job.graph, models, backend=backend, **options) as session:

        def run(prompts: Array) -> Mapping[str, Any]:
            return dict(session.run({"prompts": prompts}))

        yield run


def _instance(backend: str) -> Any:
    if backend != "ray":
        return nullcontext()
    from benchmarks.local_ray import local_ray

    return local_ray()
