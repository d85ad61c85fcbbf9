"""Loaders that give each process its own samples, exactly, whatever launches the processes."""

from flowsched.data.guard import DoubleShardingError
from flowsched.data.loader import ShardedLoader
from flowsched.data.sampler import ShardedBatchSampler
from flowsched.data.stream import ShardedDataset

__all__ = ["DoubleShardingError", "ShardedBatchSampler", "ShardedDataset", "ShardedLoader"]
