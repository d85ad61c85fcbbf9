"""The jobs on dask.distributed: one worker process a replica, tasks pinned to the workers of their node.

Dask knows tasks, not replicas nor rows: which worker runs what, and who takes which rows, is written here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.peers.jobs import JOBS, Array, Job, Worker
from benchmarks.peers.side import Run

_workers: dict[tuple[str, str], Worker] = {}  # of this process: a task is a function and keeps nothing


@contextmanager
def bring_dask(job_name: str, folder: str) -> Iterator[Run]:
    """Start a cluster of one process a replica and yield what runs a step."""
    import dask
    from distributed import Client, LocalCluster

    job = JOBS[job_name]
    count = sum(node.replicas for node in job.graph)
    dask.config.set(
        {"distributed.comm.timeouts.connect": "120s", "distributed.worker.memory.terminate": False}
    )
    with (
        LocalCluster(
            n_workers=count, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0
        ) as cluster,
        Client(cluster, timeout=120) as client,
    ):
        client.wait_for_workers(count)
        addresses = iter(client.scheduler_info(n_workers=-1)["workers"])
        pools = {node.name: [next(addresses) for _ in range(node.replicas)] for node in job.graph}
        submit = _Submitter(client, job, folder, pools)
        run = submit.run_seed if job_name == "seed" else submit.run_chain
        yield run


class _Submitter:
    """Submits the calls of a step, each pinned to the worker of its replica."""

    def __init__(self, client: Any, job: Job, folder: str, pools: Mapping[str, list[str]]) -> None:
        self._client, self._job, self._folder, self._pools = client, job, folder, pools

    def run_seed(self, prompts: Array) -> Mapping[str, Any]:
        """Run the seed's graph: half a policy batch for each of 8 replicas."""
        values, rewards = [], []
        for batch in range(4):
            answers = self._call("policy", batch % 2, prompts[4 * batch : 4 * batch + 4], None)
            for half in range(2):
                scorer = 2 * batch + half
                rows = slice(2 * half, 2 * half + 2)
                scores = self._call("reference", scorer, answers, rows)
                values.append(self._call("value", scorer, answers, rows))
                rewards.append(self._call("reward", scorer, answers, rows, scores))
        made = self._client.gather(values + rewards)
        return {"value": np.concatenate(made[:8]), "reward": np.concatenate(made[8:])}

    def run_chain(self, prompts: Array) -> Mapping[str, Any]:
        """Run a chain: batches keep their rows, and dask chooses among the workers of a node."""
        nodes = list(self._job.graph)
        first = nodes[0].batch_size or len(prompts)
        futures = [prompts[at : at + first] for at in range(0, len(prompts), first)]
        for node in nodes:
            futures = [self._call(node.name, None, made, None) for made in futures]
        return {nodes[-1].name: np.concatenate(self._client.gather(futures))}

    def _call(self, node: str, replica: int | None, made: Any, rows: slice | None, *others: Any) -> Any:
        pool = self._pools[node]
        return self._client.submit(
            call_worker,
            node,
            self._job.costs[node],
            self._folder,
            made,
            rows,
            *others,
            workers=pool if replica is None else [pool[replica]],
            pure=False,
        )


def call_worker(
    node: str, costs: tuple[float, float], folder: str, made: Array, rows: slice | None, *others: Array
) -> Array:
    """Run one call on some rows of what another made."""
    worker = _workers.get((node, folder))
    if worker is None:
        worker = _workers[node, folder] = Worker(node, costs, folder)
    result: Array = worker(made if rows is None else made[rows], *others)
    return result
