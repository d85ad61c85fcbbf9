"""What a model declares about columns whose rows differ in shape from call to call."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np

from flowsched.batch.errors import BatchError

_ATTRIBUTE = "__flowsched_padding__"
_Model = TypeVar("_Model", bound=Callable[..., Any])


@dataclass(frozen=True)
class Padding:
    """How the rows of one column are made equally wide where batches of different shapes meet.

    Every axis but the first is padded to the largest of the batches that meet.

    Attributes:
        value: fills the new places; must fit the dtype of the column.
        side: where the new places are, on every padded axis.
        lengths: name of a sibling column that keeps the width of each row (its size along axis 1, int64) as
            it was before any padding; None for no such column.

    Raises:
        BatchError: a field is not one of these.
    """

    value: float | int | bool
    side: Literal["left", "right"] = "right"
    lengths: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.value, np.generic):
            object.__setattr__(self, "value", self.value.item())
        if not isinstance(self.value, bool | int | float) or _is_huge(self.value):
            raise _misdeclared(f"a padding value cannot be {self.value!r}", "Give a number or a bool")
        if self.side not in ("left", "right"):
            raise _misdeclared(f"a padding side cannot be {self.side!r}", "Give 'left' or 'right'")
        if self.lengths is not None and (not isinstance(self.lengths, str) or not self.lengths):
            raise _misdeclared(f"lengths cannot be {self.lengths!r}", "Give the name of a column, or None")


class DeclaredPadding(Mapping[str, Padding]):
    """The paddings of a model by dotted column path, ``""`` for a bare column. Immutable, and pickles."""

    __slots__ = ("_paddings",)

    def __init__(self, paddings: Mapping[str, Padding]) -> None:
        self._paddings = dict(paddings)

    def __getitem__(self, path: str) -> Padding:
        return self._paddings[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._paddings)

    def __len__(self) -> int:
        return len(self._paddings)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._paddings!r})"


_NOTHING_DECLARED = DeclaredPadding({})


def pads(*bare: Padding | float, **columns: Padding | float) -> Callable[[_Model], _Model]:
    """Declare, on a class or function, the padding of the columns that it returns.

    A number stands for ``Padding(number)``. Subclasses inherit the declaration, or replace it with their own.
    Columns that a call does not return are ignored, since several methods of a class may serve nodes.

    Args:
        bare: the padding of a model that returns a bare column; nothing else is given then.
        columns: the padding by column name; nested ones by path, ``pads(**{"answer.ids": 0})``.

    Raises:
        BatchError: none or both of the two are declared, a name or value is not one, a lengths column cannot
            be, or the model already has a declaration of its own.

    >>> @pads(ids=0, mask=Padding(0, side="left"))
    ... def policy(prompts): ...
    >>> padding_of(policy)["mask"].side
    'left'
    """
    declared = _declared(bare, columns)

    def declare(model: _Model) -> _Model:
        name = getattr(model, "__qualname__", model)
        if _ATTRIBUTE in getattr(model, "__dict__", {}):
            raise _misdeclared(f"{name} declares padding twice", "Put all columns into one @pads(...)")
        try:
            setattr(model, _ATTRIBUTE, declared)
        except (AttributeError, TypeError) as refusal:
            mend = f"Declare it on a partial, e.g. pads(...)(functools.partial({name}))"
            raise _misdeclared(f"{name} cannot hold a declaration of padding", mend) from refusal
        return model

    return declare


def padding_of(model: object) -> Mapping[str, Padding]:
    """Return the padding that a model declares by dotted column path, ``""`` for a bare column; often empty.

    Looks through ``functools.partial``, whose own declaration comes first.
    """
    declared = getattr(model, _ATTRIBUTE, None)
    if isinstance(declared, DeclaredPadding):
        return declared
    return padding_of(model.func) if isinstance(model, functools.partial) else _NOTHING_DECLARED


def _declared(bare: tuple[Any, ...], columns: Mapping[str, Any]) -> DeclaredPadding:
    if len(bare) + bool(columns) != 1:
        raise _misdeclared(
            f"@pads was given {len(bare)} bare columns and {len(columns)} named ones",
            "Give one value for a bare column, @pads(0), or a name and a value for each, @pads(ids=0)",
        )
    given = {"": bare[0]} if bare else columns
    paddings = {
        path: value if isinstance(value, Padding) else Padding(value) for path, value in given.items()
    }
    _refuse_lengths(paddings)
    if columns and not all(all(path.split(".")) for path in columns):
        raise _misdeclared(f"@pads names no column with one of {list(columns)}", "Name each: @pads(ids=0)")
    return DeclaredPadding(paddings)


def _refuse_lengths(paddings: Mapping[str, Padding]) -> None:
    if "" in paddings and paddings[""].lengths is not None:
        raise _misdeclared("a bare column has no place for lengths", "Return a dict and name the column")
    kept = Counter(
        f"{path.rpartition('.')[0]}.{padding.lengths}".removeprefix(".")
        for path, padding in paddings.items()
        if padding.lengths
    )
    for lengths, count in kept.items():
        if count > 1 or lengths in paddings:
            raise _misdeclared(f"lengths {lengths!r} would be two columns", "Give each a name of its own")


def _is_huge(value: float) -> bool:
    try:
        float(value)
    except OverflowError:
        return True
    return False


def _misdeclared(problem: str, mend: str) -> BatchError:
    return BatchError(problem, mend, code="padding-declaration")
