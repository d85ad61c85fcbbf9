"""JSON text that every reader of JSON takes."""

from __future__ import annotations

import json
from typing import Any

JSON_REFUSALS = (TypeError, ValueError, RecursionError)
"""What :func:`json_text` raises for what JSON cannot hold."""


def json_text(data: Any, *, indent: int | None = None, encoding: str = "utf-8") -> str:
    """Return plain data as JSON; letters stay as they are where the encoding has them all.

    Raises:
        TypeError: it holds what JSON has no kind for.
        ValueError: it holds NaN, an infinity, itself, or a number with too many digits.
        RecursionError: it is nested too deep.

    Examples:
        >>> json_text({"a": "ä"})
        '{"a": "ä"}'
        >>> json_text(["ä", "\\ud800"])
        '["\\\\u00e4", "\\\\ud800"]'
    """
    try:
        text = json.dumps(data, indent=indent, ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        if str(error).startswith("Out of range float"):
            raise ValueError("JSON has no NaN and no infinity") from None
        raise
    try:
        text.encode(encoding)
    except UnicodeEncodeError:  # half a surrogate pair, which only an escape can write
        return json.dumps(data, indent=indent, allow_nan=False)
    return text
