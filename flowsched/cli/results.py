"""Outputs of a run as files: ``.jsonl`` (one row a line), ``.json`` (columns) and ``.npz`` (arrays)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from flowsched.batch import Batch, count_rows
from flowsched.cli.json_text import JSON_REFUSALS, json_text
from flowsched.cli.result_arrays import write_arrays
from flowsched.cli.result_errors import ResultError, unwritable
from flowsched.errors import FlowschedError
from flowsched.plan import Plan
from flowsched.replacing import refuse_unwritable, replacing

RESULT_SUFFIXES = (".jsonl", ".json", ".npz")

_MENDS = {
    "JSON has no": "Save it as .npz, which keeps them",
    "its keys": "Rename one of the keys",
    "it is nested": "Return flatter values",
    "Exceeds the limit": "Return smaller numbers",
}


def try_saving(path: Path) -> None:
    """Look whether outputs could be saved in a file, and change nothing.

    Raises:
        ResultFileError: the file cannot be written.
    """
    try:
        refuse_unwritable(path)
    except OSError as error:
        raise unwritable(path, error) from None


def save_results(outputs: Mapping[str, Batch], plan: Plan, path: Path) -> None:
    """Save what a run returned.

    ``.jsonl`` has one line a row, ``{"output": "reward", "sample": 0, "row": 0, "value": ...}``, with the id of
    the sample that the row belongs to (the first, where several samples became one row); ``.json`` has one object
    by output, of columns; ``.npz`` one array a column, called ``output`` or ``output/column``. The file appears
    whole or not at all: what stood there before stays until all is written.

    Raises:
        ResultError: the file cannot hold a column.
        ResultFileError: the file cannot be written.
    """
    try:
        with replacing(path) as stream:
            if path.suffix == ".npz":
                write_arrays(outputs, stream)
            elif path.suffix == ".jsonl":
                _write_rows(outputs, plan, stream)
            else:
                _write_columns(outputs, stream)
    except OSError as error:
        raise unwritable(path, error) from None


def plain(batch: Batch) -> Any:
    """Return a batch as plain data: dicts, lists, numbers, strings and None.

    Raises:
        ValueError: two keys are the same text.
        RecursionError: it is nested too deep, or holds itself.
    """
    if isinstance(batch, Mapping):
        return _by_text({key: plain(value) for key, value in batch.items()})
    if isinstance(batch, list | tuple):
        return [plain(item) for item in batch]
    return batch.tolist() if hasattr(batch, "tolist") else batch


def _by_text(values: Mapping[Any, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    keys: dict[str, Any] = {}
    for key, value in values.items():
        text = str(key)
        if text in found:
            raise ValueError(f"its keys {keys[text]!r} and {key!r} are both {json.dumps(text)} in JSON")
        found[text], keys[text] = value, key
    return found


def _write_columns(outputs: Mapping[str, Batch], stream: BinaryIO) -> None:
    between = "{"
    for name, batch in outputs.items():
        try:
            text = json_text(plain(batch))
        except JSON_REFUSALS as error:
            raise _refusal(name, _row_at_fault(batch), error) from None
        stream.write(f"{between}{json_text(name)}: {text}".encode())
        between = ",\n "
    stream.write(b"}\n" if outputs else b"{}\n")


def _write_rows(outputs: Mapping[str, Batch], plan: Plan, stream: BinaryIO) -> None:
    for name, batch in outputs.items():
        made = plan.rows[name].made
        for row, value in _rows_of(name, batch):
            line = {"output": name, "sample": int(row / made), "row": row, "value": value}
            try:
                text = json_text(line)
            except JSON_REFUSALS as error:
                raise _refusal(name, row, error) from None
            stream.write(f"{text}\n".encode())


def _rows_of(name: str, batch: Batch) -> Iterator[tuple[int, Any]]:
    try:
        columns = _columns(batch)
    except JSON_REFUSALS as error:
        raise _refusal(name, None, error) from None
    for row in range(count_rows(batch) or 0):
        try:
            value = plain(_row(columns, row))
        except JSON_REFUSALS as error:
            raise _refusal(name, row, error) from None
        yield row, value


def _columns(batch: Batch) -> Any:
    """Return a batch whose arrays are lists; what its rows hold is left as it is."""
    if isinstance(batch, Mapping):
        return _by_text({key: _columns(value) for key, value in batch.items()})
    return batch.tolist() if hasattr(batch, "tolist") else batch


def _row(columns: Any, row: int) -> Any:
    if isinstance(columns, dict):
        return {key: _row(column, row) for key, column in columns.items()}
    return None if columns is None else columns[row]


def _row_at_fault(batch: Batch) -> int | None:
    """Return the first row that JSON cannot hold; None where no row is at fault alone."""
    try:
        columns = _columns(batch)
    except JSON_REFUSALS:
        return None
    for row in range(count_rows(batch) or 0):
        try:
            json_text(plain(_row(columns, row)))
        except JSON_REFUSALS:
            return row
    return None


def _refusal(output: str, row: int | None, error: Exception) -> FlowschedError:
    problem = "it is nested too deep, or holds itself" if isinstance(error, RecursionError) else str(error)
    mend = next(
        (mend for begin, mend in _MENDS.items() if problem.startswith(begin)), "Return numbers and strings"
    )
    return ResultError(output, "" if row is None else f"row {row}", f"JSON cannot hold it, {problem}", mend)
