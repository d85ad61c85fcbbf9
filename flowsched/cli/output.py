"""What commands write to stdout (JSON for programs, tables and text for people), and beside it to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TextIO

from flowsched.cli.json_text import json_text


class StdoutLostError(Exception):
    """What a command had to say could not be written to stdout, which writes no more; the cause says why."""


def print_text(said: object) -> None:
    """Print a line or lines; what stdout has no letters for is escaped.

    Raises:
        StdoutLostError: they cannot be written.
    """
    text = str(said)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        print(text.encode(encoding, "backslashreplace").decode(encoding))
    except OSError as error:
        forget(sys.stdout)
        raise StdoutLostError from error


def flush_stdout() -> None:
    """Write what is still buffered.

    Raises:
        StdoutLostError: it cannot be written.
    """
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        forget(sys.stdout)
        raise StdoutLostError from error


def print_aside(said: object) -> None:
    """Print a line to stderr at once; where nobody can read it, it is lost, and ends nothing."""
    if sys.stderr is None:
        return
    try:
        print(said, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        forget(sys.stderr)


def forget(stream: TextIO) -> None:
    """Let what is still buffered go nowhere, so that Python does not complain when it exits."""
    with suppress(OSError, ValueError):  # it is no file, or closed
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def print_json(data: Any) -> None:
    """Print plain data as JSON."""
    print_text(json_text(data, indent=2, encoding=getattr(sys.stdout, "encoding", None) or "utf-8"))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table: by rich on a terminal, aligned plain text elsewhere."""
    cells = [["" if cell is None else str(cell) for cell in row] for row in rows]
    if sys.stdout is not None and sys.stdout.isatty():
        _print_rich(columns, cells)
    else:
        print_text("\n".join(_aligned([list(columns), *cells])))


def _print_rich(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*map(escape, row))
    Console(highlight=False).print(table)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
