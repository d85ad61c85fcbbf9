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
        layout: of a tensor; None for an array.
        trailing: the shape of a row.
        structure: the structure of all outputs like it.
    """

    kind: Any
    dtype: Any
    layout: Any
    trailing: tuple[int, ...]
    structure: Structure

    @classmethod
    def of(cls, output: Batch, structure: Structure) -> Self | None:
        """Return what an output of this structure was; None if it was no bare array or tensor."""
        if type(output) is np.ndarray or is_bare_tensor(output):
            layout = getattr(output, "layout", None)
            return cls(type(output), output.dtype, layout, tuple(output.shape[1:]), structure)
        return None

    def is_like(self, output: Any, rows: int) -> bool:
        """Whether an output of ``rows`` rows is certainly like this one."""
        kind, dtype, layout, trailing, _ = self  # faster than by name, and this is in every call's way
        if type(output) is not kind or output.dtype != dtype:
            return False
        if layout is not None and (output.is_nested or output.layout is not layout):
            return False
        return bool(output.shape == (rows, *trailing))
