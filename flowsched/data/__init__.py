"""Loaders that give each process its own samples, exactly, whatever launches the processes."""

from flowsched.data.averaging import MeanError, weighted_mean
from flowsched.data.check_loader import Checked, LoaderError, check_loader
from flowsched.data.gathering import GatherError, gather
from flowsched.data.guard import DoubleShardingError
from flowsched.data.loader import ShardedLoader
from flowsched.data.sampler import ShardedBatchSampler
from flowsched.data.stream import ShardedDataset

__all__ = [
    "Checked",
    "DoubleShardingError",
    "GatherError",
    "LoaderError",
    "MeanError",
    "ShardedBatchSampler",
    "ShardedDataset",
    "ShardedLoader",
    "check_loader",
    "gather",
    "weighted_mean",
]
