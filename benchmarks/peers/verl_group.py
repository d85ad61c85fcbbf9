"""The jobs on verl's worker groups, whose dispatch divides a batch into equal parts, one a worker.

Equal parts only: where they are not, the batch is padded first, with verl's own function. In the seed's graph
reference, value and reward are served by the same 8 workers, as verl colocates them; a worker that is given more
rows than the batch size calls its model several times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from benchmarks.peers.jobs import JOBS, Array
from benchmarks.peers.side import Run

COLOCATED = {"reference": "value", "reward": "value"}
"""In the seed's graph: nodes whose calls the workers of another serve."""


@contextmanager
def bring_verl(job_name: str, folder: str) -> Iterator[Run]:
    """Start a Ray instance and the worker groups and yield what runs a step."""
    import torch
    from verl import DataProto
    from verl.protocol import pad_dataproto_to_divisor, unpad_dataproto

    from benchmarks.local_ray import local_ray
    from benchmarks.peers.verl_workers import start_group

    job = JOBS[job_name]
    owners = [node for node in job.graph if node.name not in COLOCATED]
    with local_ray(cpus=32):
        groups = {node.name: start_group(node.replicas, job, folder) for node in owners}

        def call(node: str, rows: Any) -> Any:
            group = groups[COLOCATED.get(node, node)]
            padded, padding = pad_dataproto_to_divisor(rows, group.world_size)
            padded.meta_info = {"node": node}
            return unpad_dataproto(group.call(padded), padding)

        def run(prompts: Array) -> Mapping[str, Any]:
            made: dict[str, Any] = {
                "prompts": DataProto.from_dict({"rows": torch.from_numpy(prompts)}, meta_info={})
            }
            for node in job.graph:
                inputs = [made[name] for name in node.inputs]
                made[node.name] = call(node.name, _join(inputs))
            return {name: made[name].batch["rows"].numpy() for name in job.outputs}

        yield run


def _join(inputs: list[Any]) -> Any:
    """Return inputs of the same rows as columns of one batch."""
    joined = inputs[0].select(["rows"])
    for at, other in enumerate(inputs[1:]):
        joined = joined.union(other.select(["rows"]).rename("rows", f"rows{at}"))
    return joined
