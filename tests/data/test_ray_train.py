"""The workers of Ray Train are dealt their samples as ranks of any process group are."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest


def train(given: dict[str, Any]) -> None:
    """What each worker runs, as a user's training function would."""
    import ray.train.torch
    import torch
    import torch.distributed as dist

    from flowsched.data import DoubleShardingError, ShardedDataset, ShardedLoader, gather

    report: dict[str, Any] = {}
    for samples in (23, 1):
        for name, prepare in {
            "as it is": lambda loader: loader,
            "prepared": lambda loader: ray.train.torch.prepare_data_loader(loader, add_dist_sampler=False),
        }.items():
            loader = ShardedLoader(range(samples), 4)
            rows = [row for batch in prepare(loader) for row in batch.tolist()]
            report[f"{samples} {name}"] = gather(torch.tensor(rows, dtype=torch.int64), loader).tolist()
    stream = torch.utils.data.DataLoader(ShardedDataset(range(23), 4), batch_size=None)
    own = [row for batch in ray.train.torch.prepare_data_loader(stream) for row in batch.tolist()]
    report["data set"] = sorted(gather(torch.tensor(own)).tolist())
    try:
        report["refused"] = len(ray.train.torch.prepare_data_loader(ShardedLoader(range(23), 4)))
    except DoubleShardingError as error:
        report["refused"] = str(error)
    Path(given["folder"], f"{dist.get_rank()}.json").write_text(json.dumps(report))


@pytest.mark.timeout(240)
def test_workers_of_ray_train_gather_every_row_once_and_a_second_sharding_is_refused(tmp_path: Path) -> None:
    ray = pytest.importorskip("ray", reason="ray is not installed")
    reason = 'ray.train is not installed: pip install "ray[train]"'
    pytest.importorskip("ray.train.torch", reason=reason, exc_type=ImportError)
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer

    ray.cloudpickle.register_pickle_by_value(sys.modules[train.__module__])  # workers cannot import tests
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        TorchTrainer(
            train,
            train_loop_config={"folder": str(tmp_path)},
            scaling_config=ScalingConfig(num_workers=2, resources_per_worker={"CPU": 1}),
            torch_config=TorchConfig(backend="gloo"),
            run_config=RunConfig(storage_path=str(tmp_path), name="run"),
        ).fit()
    finally:
        ray.shutdown()
    for rank in range(2):
        report = json.loads((tmp_path / f"{rank}.json").read_text())
        assert report.pop("refused").endswith(
            "Give prepare_data_loader add_dist_sampler=False, or leave it out and give the loader device="
        )
        assert report == {
            "23 as it is": list(range(23)),
            "23 prepared": list(range(23)),
            "1 as it is": [0],
            "1 prepared": [0],
            "data set": list(range(23)),
        }
