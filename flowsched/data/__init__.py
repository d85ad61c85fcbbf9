"""Loaders that give each process its own samples, exactly, whatever launches the processes."""

from flowsched.data.guard import DoubleShardingError
from flowsched.data.loader import ShardedLoader
from flowsched.data.sampler import ShardedBatchSampler

__all__ = ["DoubleShardingError", "ShardedBatchSampler", "ShardedLoader"]
