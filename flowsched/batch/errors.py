"""What is wrong with a batch, in sentences that name the column and the mend."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np

from flowsched.errors import FlowschedError

_ONE_PER_ROW = "One value per call cannot be cut into rows; use one per row, e.g. [value] * rows"
_NAME_COLUMNS = "Use a dict that names each column, or a list of one value per row"
_TABLES = ("pandas", "polars", "pyarrow", "datasets")


class BatchError(FlowschedError):
    """A batch, or batches that meet, whose columns are not what they must be.

    Args:
        problem: what is wrong, with names and numbers.
        mend: how to put it right.
        code: stable kebab-case name of the kind of problem.
        column: dotted path of the column at fault, ``""`` for a bare column; None where it is not about one.
    """

    def __init__(self, problem: str, mend: str, *, code: str, column: str | None = None) -> None:
        self.problem = problem
        self.mend = mend
        self.code = code
        self.column = column
        super().__init__(f"{problem}. {mend}")

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.problem, self.mend, self.code, self.column)

    @classmethod
    def not_a_column(cls, value: object, path: Sequence[str]) -> BatchError:
        """``value`` stands where a column must be."""
        where = say_column(path) if path else "the batch"
        problem = f"{where} is {_say_type(value)}, which is not a column"
        return cls(problem, _mend_value(value, path), code="column-kind", column=".".join(path))

    @classmethod
    def not_a_key(cls, key: object, path: Sequence[str]) -> BatchError:
        """``key`` of the dict at ``path`` is not a name that a column can have."""
        place = f"the dict of {say_column(path)}" if path else "the batch"
        found = "an empty name" if key == "" else f"the key {key!r} ({type(key).__name__})"
        mend = "Name every column with a str of at least one character"
        return cls(f"{place} has {found}", mend, code="column-key", column=".".join(path))

    @classmethod
    def rows_disagree(cls, rows: Sequence[tuple[str, int]]) -> BatchError:
        """Columns of one batch, as (path, rows), do not all have the same number of rows."""
        listed = ", ".join(f"{column!r} has {count}" for column, count in rows)
        odd = next(column for column, count in rows if count != rows[0][1])
        mend = "Use one element per row in every column"
        return cls(f"columns disagree on rows: {listed}", mend, code="rows-disagree", column=odd)

    @classmethod
    def rows_out_of_range(cls, start: int, stop: int, rows: int) -> BatchError:
        """The half-open range of rows asked for is not inside the batch."""
        problem = f"rows [{start}, {stop}) were asked of a batch of {rows} rows"
        return cls(problem, f"Ask for 0 <= start <= stop <= {rows}", code="rows-range")

    @classmethod
    def unlike(cls, position: int, sentences: Sequence[str], *, code: str, column: str | None) -> BatchError:
        """The batch at ``position`` cannot follow batch 0, for the reasons in ``sentences``."""
        problem = f"batches 0 and {position} do not fit together: {'; '.join(sentences)}"
        mend = "Return the same columns, of the same kind, dtype, number of axes and device, from every call"
        return cls(problem, mend, code=code, column=column)


def say_column(path: Sequence[str]) -> str:
    """Return how errors call the column at ``path``.

    >>> say_column(("answer", "ids")), say_column(())
    ("column 'answer.ids'", 'the bare column')
    """
    return f"column {'.'.join(path)!r}" if path else "the bare column"


def _rebuild(kind: type[BatchError], problem: str, mend: str, code: str, column: str | None) -> BatchError:
    return kind(problem, mend, code=code, column=column)


def _say_type(value: object) -> str:
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    if _axes(value) == 0 and not isinstance(value, np.generic):
        return f"a {name} with 0 axes"
    if _is_nested(value):
        return f"a nested {name}"
    if (layout := getattr(value, "layout", None)) is not None:
        return f"a {name} of layout {layout}"
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _mend_value(value: Any, path: Sequence[str]) -> str:
    table = type(value).__module__.partition(".")[0] in _TABLES
    if table and hasattr(value, "columns"):
        return "Use a dict of its columns, e.g. {name: frame[name].to_numpy() for name in frame.columns}"
    if table and hasattr(value, "to_numpy"):
        return "Use an array, e.g. value.to_numpy()"
    if isinstance(value, np.ma.MaskedArray) and value.ndim:
        return "Use value.filled(...), and the mask as a column of its own"
    if isinstance(value, str | bytes | numbers.Number | np.generic) or _axes(value) == 0:
        return _ONE_PER_ROW
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return "Use a dict, e.g. value._asdict()"
    if isinstance(value, tuple):
        return "Use a list, e.g. list(value)" if path else _NAME_COLUMNS
    if isinstance(value, Mapping):
        return "Use a dict, e.g. dict(value)"
    if isinstance(value, Set):
        return "Use a list, in the order of the rows; a set has no order"
    if isinstance(value, range | Iterator):
        return "Use a list, e.g. list(value)"
    if _is_nested(value):
        return "Use a padded tensor and the lengths, or a list of tensors, e.g. list(value.unbind())"
    if hasattr(value, "to_dense"):
        return "Use a strided tensor, e.g. value.to_dense()"
    if hasattr(value, "__array__"):
        return "Use a numpy array, e.g. numpy.asarray(value)"
    return "Use a numpy array, a torch tensor or a list, with one element per row"


def _axes(value: object) -> object:
    return getattr(value, "ndim", None)


def _is_nested(value: object) -> bool:
    return getattr(value, "is_nested", False) is True
