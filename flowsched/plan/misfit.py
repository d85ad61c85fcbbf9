"""Whether the columns of a table fit each other, so that they can be looked up at all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flowsched.plan.table import Table

_OF_CALLS = ("node", "replica", "wave", "position", "start", "stop", "sequence")
_OF_FRAGMENTS = ("producer", "fragment_start", "fragment_stop")


def find_misfit(table: Table, widths: Sequence[int]) -> str | None:
    """Return how the columns of a table do not fit each other, or the graph; None where they do.

    Args:
        table: the table.
        widths: number of inputs of each of the graph's nodes.
    """
    for names in (_OF_CALLS, _OF_FRAGMENTS):
        lengths = {name: len(getattr(table, name)) for name in names}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
            return f"its columns differ in length: {listed}"
    node, feed = table.node, table.feed
    if table.calls and not (node.min() >= 0 and node.max() < len(widths) and (np.diff(node) >= 0).all()):
        return f"its column node does not run from 0 to {len(widths) - 1}"
    feeds = int(np.bincount(node, minlength=len(widths)) @ np.array(widths, np.int64))
    if len(feed) != feeds + 1:
        return f"its column feed has {len(feed)} numbers for {feeds} feeds, not {feeds + 1}"
    if feed[0] != 0 or feed[-1] != table.fragments or (np.diff(feed) < 0).any():
        return f"its column feed does not rise from 0 to {table.fragments}"
    return None
