"""The worker that a verl worker group runs, and how a group is started on a machine without GPUs."""

from __future__ import annotations

from typing import Any

import ray
import torch
from verl import DataProto
from verl.single_controller.base import Worker as VerlWorker
from verl.single_controller.base.decorator import Dispatch, register
from verl.single_controller.ray import RayClassWithInitArgs, RayResourcePool, RayWorkerGroup

from benchmarks.peers.jobs import Job, Worker


class NodeWorker(VerlWorker):  # type: ignore[misc]
    """Serves any node of a job."""

    def __init__(self, job: Job, folder: str) -> None:
        super().__init__()
        self._workers = {name: Worker(name, costs, folder) for name, costs in job.costs.items()}
        self._sizes = {node.name: node.batch_size for node in job.graph}

    @register(dispatch_mode=Dispatch.DP_COMPUTE_PROTO)  # type: ignore[untyped-decorator]
    def call(self, batch: Any) -> Any:
        """Call the model of a node on this worker's part, in batches of at most its batch size."""
        node = batch.meta_info["node"]
        columns = list(
            zip(
                *(column.split(self._sizes[node] or len(column)) for column in batch.batch.values()),
                strict=True,
            )
        )
        made = torch.cat([self._workers[node](*parts) for parts in columns])
        return DataProto.from_dict({"rows": made})


def start_group(workers: int, job: Job, folder: str) -> Any:
    """Return a group of so many workers."""
    pool = RayResourcePool([workers], use_gpu=False, max_colocate_count=1)
    return RayWorkerGroup(pool, RayClassWithInitArgs(ray.remote(NodeWorker), job, folder))
