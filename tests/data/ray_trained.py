"""What a user's script with Ray Train does: ``python ray_trained.py FOLDER`` writes a report of each worker."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def train(given: dict[str, Any]) -> None:
    """What each worker runs, as a user's training function would."""
    import torch
    import torch.distributed as dist

    from flowsched.data import DoubleShardingError, ShardedDataset, ShardedLoader, gather

    library: Any = importlib.import_module("ray.train.torch")
    report: dict[str, Any] = {}
    ways: dict[str, Callable[[Any], Any]] = {
        "as it is": lambda loader: loader,
        "prepared": lambda loader: library.prepare_data_loader(loader, add_dist_sampler=False),
    }
    for samples in (23, 1):
        for name, prepare in ways.items():
            loader = ShardedLoader(range(samples), 4)
            rows = [row for batch in prepare(loader) for row in batch.tolist()]
            report[f"{samples} {name}"] = gather(torch.tensor(rows, dtype=torch.int64), loader).tolist()
    stream = torch.utils.data.DataLoader(ShardedDataset(range(23), 4), batch_size=None)
    own = [row for batch in library.prepare_data_loader(stream) for row in batch.tolist()]
    report["data set"] = sorted(gather(torch.tensor(own)).tolist())
    try:
        report["refused"] = len(library.prepare_data_loader(ShardedLoader(range(23), 4)))
    except DoubleShardingError as error:
        report["refused"] = str(error)
    Path(given["folder"], f"{dist.get_rank()}.json").write_text(json.dumps(report))


def main(folder: str) -> None:
    """Run two workers on a Ray of their own."""
    import ray
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        TorchTrainer(
            train,
            train_loop_config={"folder": folder},
            scaling_config=ScalingConfig(num_workers=2, resources_per_worker={"CPU": 1}),
            torch_config=TorchConfig(backend="gloo"),
            run_config=RunConfig(storage_path=folder, name="run"),
        ).fit()
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
