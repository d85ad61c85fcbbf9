"""Step inputs from files, for graphs whose data does not stand beside them in Python."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flowsched.address.modules import load_object
from flowsched.errors import AddressError

_FORMS = "Write data.json, data.jsonl, path/file.py, path/file.py:name or package.module:name"


def load_data(address: str, sources: Sequence[str]) -> Mapping[str, Any]:
    """Load one batch for each source.

    Args:
        address: a ``.json`` file, an object with a list, or an object of columns, for each source; a ``.jsonl``
            file, one row a line, for a graph with one source; or the address of a dict in Python, which is
            called ``data`` where a file is named alone.
        sources: names of the graph's sources.

    Raises:
        AddressError: there is no such file or object, or it does not hold batches.
    """
    if address.endswith(".jsonl"):
        return _load_rows(address, sources)
    if address.endswith(".json"):
        found = _parse(_read(address), address, first_line=1)
    elif address.endswith(".py") or ":" in address:
        found = load_object(address, "data")
    else:
        raise AddressError(f"{address!r} is no address of data. {_FORMS}")
    if not isinstance(found, Mapping):
        listed = ", ".join(f"{name}: [...]" for name in sources)
        raise AddressError(
            f"{address} holds a value of type {type(found).__name__}. Give an object by source, {{{listed}}}"
        )
    return found


def _load_rows(address: str, sources: Sequence[str]) -> Mapping[str, Any]:
    if len(sources) != 1:
        message = (
            f"{address} holds the rows of one source, and the graph has {len(sources)}: {', '.join(sources)}"
        )
        raise AddressError(f"{message}. Write a .json file, an object with a list for each source")
    rows = [
        (number, _parse(line, address, first_line=number))
        for number, line in enumerate(_read(address).split("\n"), 1)
        if line.strip()
    ]
    if not any(isinstance(row, dict) for _, row in rows):
        return {sources[0]: [row for _, row in rows]}
    return {sources[0]: _columns_of(rows, address)}


def _columns_of(rows: Sequence[tuple[int, Any]], address: str) -> dict[str, list[Any]]:
    """Return rows that are objects as columns; all must have the keys of the first."""
    keys = list(rows[0][1]) if isinstance(rows[0][1], dict) else []
    for number, row in rows:
        if not isinstance(row, dict) or set(row) != set(keys):
            has = (
                f"the keys {', '.join(row)}"
                if isinstance(row, dict)
                else f"a value of type {type(row).__name__}"
            )
            first = f"line {rows[0][0]} has {', '.join(keys) or 'no keys'}"
            raise AddressError(f"{address}:{number}: the row has {has}, {first}. Give all rows the same keys")
    return {key: [row[key] for _, row in rows] for key in keys}


def _read(address: str) -> str:
    try:
        return Path(address).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise AddressError(f"{address}: byte {error.start} is not UTF-8. Save the file as UTF-8") from None
    except (OSError, ValueError) as error:
        message = str(getattr(error, "strerror", error)).lower()
        raise AddressError(f"{address}: {message}. Give the path of a file that can be opened") from None


def _parse(text: str, address: str, first_line: int) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        raise AddressError(f"{address}:{line}:{error.colno}: {error.msg}. Write JSON") from None
    except (RecursionError, ValueError) as error:
        raise AddressError(f"{address}:{first_line}: {error}. Write plain JSON") from None
