"""Plain-text tables: rows of cells as aligned lines."""

from __future__ import annotations

from collections.abc import Sequence


def align(rows: Sequence[Sequence[str]], right: Sequence[bool] = (), indent: str = "  ") -> list[str]:
    """Return one line a row, with two spaces between columns.

    Args:
        rows: cells; all rows are of one length.
        right: which columns stand at the right; those beyond its end stand at the left.
        indent: what every line begins with.

    >>> align([["node", "calls"], ["policy", "4"]], right=[False, True])
    ['  node    calls', '  policy      4']
    """
    if not rows:
        return []
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    sides = [*right, *[False] * (len(widths) - len(right))]
    return [
        indent
        + "  ".join(
            cell.rjust(width) if side else cell.ljust(width)
            for cell, width, side in zip(row, widths, sides, strict=True)
        ).rstrip()
        for row in rows
    ]
