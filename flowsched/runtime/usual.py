"""What the outputs of a node usually are: one array or tensor like the one before, which is known at a look."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from flowsched.batch import Batch, Structure
from flowsched.batch.columns import is_bare_tensor


class Usual(NamedTuple):
    """An output that was one bare array or tensor, apart from its values and its number of rows.

    Attributes:
        kind: its class.
        dtype: of numpy or torch.
        trailing: the shape of a row.
        structure: the structure of all outputs like it.
    """

    kind: Any
    dtype: Any
    trailing: tuple[int, ...]
    structure: Structure

    @classmethod
    def of(cls, output: Batch, structure: Structure) -> Self | None:
        """Return what an output of this structure was; None if it was no bare array or tensor."""
        if type(output) is np.ndarray or is_bare_tensor(output):
            return cls(type(output), output.dtype, tuple(output.shape[1:]), structure)
        return None

    def is_like(self, output: Any, rows: int) -> bool:
        """Whether an output of ``rows`` rows is certainly like this one."""
        if type(output) is not self.kind or output.dtype != self.dtype:
            return False
        if self.kind is not np.ndarray and not is_bare_tensor(output):
            return False
        return bool(output.shape == (rows, *self.trailing))
