"""Whether the table's columns have their types and lengths, and its calls stand node by node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flowsched.errors import Problem
from flowsched.plan import Plan
from flowsched.plan.table import COLUMN_TYPES

_OF_CALLS = ("node", "replica", "wave", "position", "start", "stop", "sequence")
_OF_FRAGMENTS = ("producer", "fragment_start", "fragment_stop")
_MEND = "Compile the graph again, or load the plan from an undamaged file"


def find_column_problems(plan: Plan) -> Iterator[Problem]:
    """Yield what keeps the calls of the table from being told apart."""
    columns = dict(plan.table.columns())
    problems = list(_find_type_problems(columns)) or list(_find_length_problems(columns))
    yield from problems or _find_node_problems(plan, columns["node"])


def _find_type_problems(columns: Mapping[str, Any]) -> Iterator[Problem]:
    for name, column in columns.items():
        expected = np.dtype(COLUMN_TYPES[name]).name
        if not isinstance(column, np.ndarray):
            found = f"a {type(column).__name__}"
        elif column.dtype != expected or column.ndim != 1:
            found = f"{column.dtype} of shape {column.shape}"
        else:
            continue
        yield Problem("table", f"column {name!r}", f"it is {found}, not one row of {expected}", _MEND)


def _find_length_problems(columns: Mapping[str, Any]) -> Iterator[Problem]:
    for names, kind in ((_OF_CALLS, "calls"), (_OF_FRAGMENTS, "fragments")):
        first, *others = names
        for name in others:
            if len(columns[name]) != len(columns[first]):
                message = f"it has {len(columns[name])} {kind}, but {first!r} has {len(columns[first])}"
                yield Problem("table", f"column {name!r}", message, _MEND)


def _find_node_problems(plan: Plan, node: NDArray[Any]) -> Iterator[Problem]:
    names = [declared.name for declared in plan.graph.nodes]
    if not len(node):
        return
    beyond = (node < 0) | (node >= len(names))
    falls = node[1:] < node[:-1]
    if beyond.any():
        at = int(beyond.argmax())
        message = f"it is of node {node[at]}, but the graph's {len(names)} nodes are 0 to {len(names) - 1}"
        yield Problem("table", f"call {at} of the table", message, _MEND)
    elif falls.any():
        at = int(falls.argmax()) + 1
        message = f"it stands at {at}, after a call of node {names[node[at - 1]]!r}, which is declared later"
        yield Problem("table", f"node {names[node[at]]!r}", f"a call of it is out of place: {message}", _MEND)
