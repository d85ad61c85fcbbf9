"""Batches: columns that are always cut at the same rows. See :data:`Batch` for what they may be."""

from flowsched.batch.columns import Batch
from flowsched.batch.cut import protect, share, spread, take
from flowsched.batch.errors import BatchError
from flowsched.batch.join import concat
from flowsched.batch.lengths import with_lengths
from flowsched.batch.padding import Padding, padding_of, pads
from flowsched.batch.rows import count_rows
from flowsched.batch.structures import Structure, differences, structure
from flowsched.batch.trailing import TrailingConflict, trailing_conflicts

__all__ = [
    "Batch",
    "BatchError",
    "Padding",
    "Structure",
    "TrailingConflict",
    "concat",
    "count_rows",
    "differences",
    "padding_of",
    "pads",
    "protect",
    "share",
    "spread",
    "structure",
    "take",
    "trailing_conflicts",
    "with_lengths",
]
