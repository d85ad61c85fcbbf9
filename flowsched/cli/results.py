"""Outputs of a run as files: ``.jsonl`` (one row a line), ``.json`` (columns) and ``.npz`` (arrays)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from flowsched.batch import Batch, count_rows
from flowsched.errors import FlowschedError
from flowsched.plan import Plan

RESULT_SUFFIXES = (".jsonl", ".json", ".npz")


class ResultError(FlowschedError):
    """Outputs that a file of this kind cannot hold.

    Args:
        output: name of the output.
        column: path of the column inside it; empty for a bare one.
        problem: why.
        mend: how to keep it anyway.
    """

    code = "result"

    def __init__(self, output: str, column: str, problem: str, mend: str) -> None:
        self.arguments = (output, column, problem, mend)
        place = f"output {output!r}" + (f", column {column!r}" if column else "")
        super().__init__(f"{place}: {problem}. {mend}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self.arguments


def refuse_unwritable(path: Path) -> None:
    """Raise what writing a file would raise, and leave no trace of the attempt.

    Raises:
        OSError: the file cannot be written.
    """
    target = path.resolve()  # a link stays, and what it leads to is tried
    if target.exists() and not target.is_file() and not target.is_dir():
        return  # a pipe or device, which may wait for its reader
    is_new = not target.exists()
    with target.open("ab"):
        pass
    if is_new:
        target.unlink()


def save_results(outputs: Mapping[str, Batch], plan: Plan, path: Path) -> None:
    """Save what a run returned.

    ``.jsonl`` has one line a row, ``{"output": "reward", "sample": 0, "row": 0, "value": ...}``, with the id of
    the sample that the row belongs to (the first, where several samples became one row); ``.json`` has one object
    by output, of columns; ``.npz`` one array a column, called ``output`` or ``output/column``.

    Raises:
        ResultError: the file cannot hold a column.
        OSError: the file cannot be written.
    """
    if path.suffix == ".npz":
        _save_arrays(outputs, path)
        return
    with path.open("w", encoding="utf-8") as file:
        if path.suffix == ".jsonl":
            for line in _rows_of(outputs, plan):
                file.write(_encode(line["output"], line) + "\n")
        else:
            parts = (f"{json.dumps(name)}: {_encode(name, plain(batch))}" for name, batch in outputs.items())
            file.write("{" + ",\n ".join(parts) + "}\n")


def plain(batch: Batch) -> Any:
    """Return a batch as plain data: dicts, lists, numbers, strings and None."""
    if isinstance(batch, Mapping):
        return {str(key): plain(value) for key, value in batch.items()}
    if isinstance(batch, list | tuple):
        return [plain(item) for item in batch]
    return batch.tolist() if hasattr(batch, "tolist") else batch


def _rows_of(outputs: Mapping[str, Batch], plan: Plan) -> Iterator[dict[str, Any]]:
    for name, batch in outputs.items():
        columns, made = plain(batch), plan.rows[name].made
        for row in range(count_rows(batch) or 0):
            yield {"output": name, "sample": int(row / made), "row": row, "value": _row(columns, row)}


def _row(columns: Any, row: int) -> Any:
    if isinstance(columns, dict):
        return {key: _row(column, row) for key, column in columns.items()}
    return None if columns is None else columns[row]


def _encode(output: str, value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except TypeError as error:
        raise ResultError(output, "", f"JSON cannot hold it, {error}", "Return numbers and strings") from None


def _save_arrays(outputs: Mapping[str, Batch], path: Path) -> None:
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for name, batch in outputs.items():
        for column, values in _leaves(batch, ()):
            arrays["/".join((name, *column))] = _array(name, "/".join(column), values)
    with path.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def _leaves(batch: Batch, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(batch, Mapping):
        for key, value in batch.items():
            yield from _leaves(value, (*path, str(key)))
    elif batch is not None:
        yield path, batch


def _array(output: str, column: str, values: Any) -> np.ndarray[Any, Any]:
    mend = "Save it as .json or .jsonl"
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as error:
        raise ResultError(output, column, f"it is no array, {error}", mend) from None
    if array.dtype.hasobject:
        raise ResultError(output, column, f"an array cannot hold its {len(array)} objects", mend)
    return array
