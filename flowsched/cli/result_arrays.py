"""Outputs of a run as arrays in an ``.npz`` file."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np

from flowsched.batch import Batch
from flowsched.cli.result_errors import ResultError

_Array = np.ndarray[Any, Any]
_MEMBER = ".npy"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the bytes must not tell when they were written
_MEND = "Save it as .json or .jsonl"


def write_arrays(outputs: Mapping[str, Batch], stream: BinaryIO) -> None:
    """Write one array a column, called ``output`` or ``output/column``.

    The members are written one by one, since ``numpy.savez`` takes ``file`` and ``allow_pickle`` for its own.

    Raises:
        ResultError: an array cannot hold a column, or two columns would have one name.
    """
    arrays = _arrays_of(outputs)  # all of them, before the first is written
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(name + _MEMBER, _EPOCH)
            member.external_attr = 0o644 << 16
            with archive.open(member, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def _arrays_of(outputs: Mapping[str, Batch]) -> dict[str, _Array]:
    arrays: dict[str, _Array] = {}
    for output, batch in outputs.items():
        for path, values in _leaves(batch, ()):
            name, column = "/".join((output, *path)), "/".join(path)
            place = f"column {column!r}" if path else ""
            if _is_taken(name, arrays):
                problem = f"an array called {name!r} is there already, or is read in place of this one"
                raise ResultError(output, place, problem, f"Rename one of the two. {_MEND}")
            if not _can_name(name):
                raise ResultError(output, place, f"no array in the file can be called {name!r}", _MEND)
            arrays[name] = _array(output, place, values)
    return arrays


def _is_taken(name: str, arrays: Mapping[str, _Array]) -> bool:
    """Whether readers, to whom ``a`` and ``a.npy`` are the same name, could take another array for this one."""
    return any(other in arrays for other in (name, name + _MEMBER, name.removesuffix(_MEMBER)))


def _can_name(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in name


def _leaves(batch: Batch, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(batch, Mapping):
        for key, value in batch.items():
            yield from _leaves(value, (*path, str(key)))
    elif batch is not None:
        yield path, batch


def _array(output: str, place: str, values: Any) -> _Array:
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:
        raise ResultError(output, place, f"it is no array, {error}", _MEND) from None
    if array.dtype.hasobject:
        raise ResultError(output, place, f"an array cannot hold its {array.size} objects", _MEND)
    return array
