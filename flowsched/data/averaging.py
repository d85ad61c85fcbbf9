"""The mean over rows, whatever the batches and ranks that they came in."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, overload

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from flowsched.data.peers import OtherCallError, Peers
from flowsched.errors import Problem, ProblemsError, say_exception

Numbers: TypeAlias = "torch.Tensor | NDArray[Any] | Sequence[Any] | float | None"
"""(n,) numbers, one number, or None for none; a sequence may hold tensors of one element."""


class MeanError(ProblemsError):
    """Values of which there is no mean over rows. Raised on all ranks alike."""

    code = "mean"


@overload
def weighted_mean(
    values: Mapping[str, Numbers], rows: Any = None, *, process_group: dist.ProcessGroup | None = None
) -> dict[str, float]: ...


@overload
def weighted_mean(
    values: Numbers, rows: Numbers = None, *, process_group: dist.ProcessGroup | None = None
) -> float: ...


def weighted_mean(
    values: Any, rows: Any = None, *, process_group: dist.ProcessGroup | None = None
) -> float | dict[str, float]:
    """Return the mean over all rows of all ranks: over rows, not over batches. All ranks of the group call it.

    One collective, however many values and names there are. Sums are taken in float64, and those of ranks added in
    their order, so that all ranks return the same bits.

    Args:
        values: this rank's: (n,) one for each row; or, with ``rows``, one for each batch, the mean over its rows. A
            dict of these by name is averaged name by name. None or nothing where this rank has none.
        rows: (n,) for how many rows each value stands, or any weights of 0 or more; in a dict by name where they
            differ by name. A value that stands for no rows counts nothing, even if it is NaN.
        process_group: whose ranks take part; by default all processes.

    Returns:
        The mean, or a dict of means. NaN where a value is NaN, and where there are no rows at all.

    Raises:
        MeanError: values that are no numbers, other than one number of rows for each value, rows below 0, or names
            that are no strings or differ between ranks that have any; or another call, such as gather, on another.
        ShardingError: this process is not in the group, or has none although others were started.

    >>> weighted_mean([1.0, 4.0], rows=[16, 8])
    2.0
    >>> weighted_mean({"loss": [0.5, 1.5], "accuracy": torch.tensor([True, False])})
    {'loss': 1.0, 'accuracy': 0.5}
    """
    peers = Peers(process_group)
    cause: Exception | None = None
    try:
        told = _Told(_sum_all(values, rows), isinstance(values, Mapping))
    except ProblemsError as error:
        told = _Told(problems=tuple(_at(peers.rank, problem) for problem in error.problems))
    except Exception as error:  # noqa: BLE001 - values may refuse in any way, and other ranks wait
        cause = error
        problem = Problem("no-numbers", "values", say_exception(error), "Give numbers")
        told = _Told(problems=(_at(peers.rank, problem),))
    try:
        everyone: list[_Told] = peers.tell("weighted_mean", told)
    except OtherCallError as error:
        raise MeanError("weighted_mean", error.problems) from None
    problems = [problem for one in everyone for problem in one.problems]
    problems = problems or _find_other_names(everyone)
    if problems:
        raise MeanError("weighted_mean", problems) from cause
    means = _divide(everyone)
    return means if any(one.named for one in everyone) else means.get("", math.nan)


@dataclass(frozen=True)
class _Told:
    """What one rank tells: by name, the sum of its values times rows, and its rows."""

    sums: Mapping[str, tuple[float, float]] | None = None
    named: bool = False
    problems: tuple[Problem, ...] = ()


def _divide(everyone: Sequence[_Told]) -> dict[str, float]:
    names = next((one.sums for one in everyone if one.sums), {})
    means = {}
    for name in names:
        own = [one.sums[name] for one in everyone if one.sums]
        total, rows = (sum(column) for column in zip(*own, strict=True))
        means[name] = total / rows if rows else math.nan
    return means


def _find_other_names(everyone: Sequence[_Told]) -> list[Problem]:
    """Return a problem for each rank whose names differ from those of the first that has any."""
    having = [(rank, one.sums, one.named) for rank, one in enumerate(everyone) if one.sums]
    found = []
    for rank, sums, named in having:
        first, reference, first_named = having[0]
        if sums.keys() != reference.keys() or named != first_named:
            ours, theirs = _say_names(sums, named), _say_names(reference, first_named)
            found.append(
                Problem(
                    "other-names",
                    f"rank {rank}",
                    f"it has {ours}, and rank {first} has {theirs}",
                    "Give the same names on every rank, or None where a rank has nothing",
                )
            )
    return found


def _say_names(sums: Mapping[str, object], named: bool) -> str:
    return ", ".join(map(repr, sorted(sums))) or "no names" if named else "values without a name"


def _at(rank: int, problem: Problem) -> Problem:
    return Problem(problem.code, f"rank {rank}, {problem.place}", problem.message, problem.mend)


def _sum_all(values: Any, rows: Any) -> dict[str, tuple[float, float]] | None:
    """Return by name the sum of values times rows, and the rows; None where neither values nor names are given."""
    if values is None:
        return None
    if not isinstance(values, Mapping):
        total, counted, given = _sum("values", values, rows)
        return {"": (total, counted)} if given else None
    for named in (values, rows) if isinstance(rows, Mapping) else (values,):
        for name in named:
            if not isinstance(name, str):
                said = f"one of them is {name!r} ({type(name).__name__})"
                raise _refuse("bad-name", "names", said, f"Give strings, such as {str(name)!r}")
    if isinstance(rows, Mapping) and rows.keys() != values.keys():
        said = f"they are given for {_say_names(rows, True)}, and values for {_say_names(values, True)}"
        raise _refuse("other-names", "rows", said, "Give rows for each name, or the same for all")
    return {
        name: _sum(f"values of {name!r}", own, rows[name] if isinstance(rows, Mapping) else rows)[:2]
        for name, own in values.items()
    }


def _sum(place: str, values: Any, rows: Any) -> tuple[float, float, int]:
    """Return the sum of values times rows, the rows, and how many values there are."""
    numbers = _to_numbers(place, values)
    if rows is None:
        return float(numbers.sum()), float(len(numbers)), len(numbers)
    weights = _to_numbers("rows", rows).to(numbers.device)
    if len(weights) != len(numbers):
        said = f"there are {len(numbers)}, and {len(weights)} numbers of rows"
        raise _refuse("other-lengths", place, said, "Give one number of rows for each value")
    if not bool(((weights >= 0) & torch.isfinite(weights)).all()):
        raise _refuse(
            "bad-rows", "rows", f"one of them is {_first_bad(weights)}", "Give numbers of 0 or more"
        )
    counted = torch.where(weights > 0, numbers * weights, 0.0)
    return float(counted.sum()), float(weights.sum()), len(numbers)


def _first_bad(weights: torch.Tensor) -> float:
    return float(weights[~((weights >= 0) & torch.isfinite(weights))][0])


def _to_numbers(place: str, values: Any) -> torch.Tensor:
    """Return (n,) float64."""
    if isinstance(values, Iterable) and not isinstance(values, (torch.Tensor, np.ndarray, str, bytes)):
        values = list(values)
        if any(isinstance(value, torch.Tensor) for value in values):
            values = torch.stack([torch.as_tensor(value).detach().double().reshape(()) for value in values])
    tensor = values if isinstance(values, torch.Tensor) else torch.from_numpy(np.atleast_1d(_numeric(values)))
    tensor = tensor.detach()
    if tensor.is_complex() or tensor.ndim > 1:
        said = f"they are {str(tensor.dtype).removeprefix('torch.')} of shape {tuple(tensor.shape)}"
        raise _refuse("no-numbers", place, said, "Give one real number for each row, or for each batch")
    return tensor.reshape(-1).double()


def _numeric(values: Any) -> NDArray[Any]:
    array = np.asarray(values)
    if array.dtype.kind not in "biufcO":
        raise TypeError(f"{array.dtype} is no type of numbers")
    if array.dtype.kind == "O" and any(value is None for value in array.flat):
        raise TypeError("None is no number")  # numpy would make NaN of it
    return array if array.dtype.kind in "c" else array.astype(np.float64)


def _refuse(code: str, place: str, message: str, mend: str) -> MeanError:
    return MeanError("weighted_mean", [Problem(code, place, message, mend)])
