"""What does a replica work off, in which order?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from flowsched.inspect.arithmetic import count
from flowsched.inspect.errors import ExplainError
from flowsched.inspect.explain_node import call_facts
from flowsched.inspect.explanation import Explanation
from flowsched.inspect.listing import WIDTH, list_calls, pick
from flowsched.inspect.reasons import served_by_owners
from flowsched.inspect.text import wrap
from flowsched.plan import Plan


def explain_replica(
    plan: Plan, owner: str, replica: int, limit: int | None, *, node: int | None
) -> Explanation:
    """Explain a replica's queue, or its calls of one node; ``limit`` bounds the calls that are listed.

    Args:
        plan: the plan.
        owner: name of the node that has the replica.
        replica: index of the replica.
        limit: the most calls that are listed; None lists all.
        node: index of the only node whose calls are asked for; None for all that the replica serves.

    Raises:
        ExplainError: the replica does not serve the node.
    """
    served = served_by_owners(plan.graph)[owner]
    name = f"{owner}.{replica}"
    if node is not None and node not in served:
        names = [plan.graph.nodes[index].name for index in served]
        raise ExplainError.not_served(plan.graph.nodes[node].name, name, names)
    asked = served if node is None else [node]
    numbers = _queue(plan, asked, replica)
    rows = {plan.graph.nodes[index].name: _rows_on(plan, index, replica) for index in asked}
    lines = [
        *wrap(f"replica {name} of {plan.graph[owner].replicas}: ", _say_load(plan, rows, len(numbers))),
        *list_calls(plan, numbers, limit, WIDTH),
    ]
    picked = pick(len(numbers), limit)
    facts = {
        "kind": "replica",
        "replica": name,
        "serves": [plan.graph.nodes[index].name for index in served],
        "idle": not numbers,
        "calls": len(numbers),
        "rows": rows,
        "listed": [call_facts(plan, numbers[at]) for at in picked.places],
        "left_out": picked.left_out,
    }
    return Explanation(tuple(lines), facts)


def _queue(plan: Plan, nodes: Iterable[int], replica: int) -> list[int]:
    """Return the numbers of a replica's calls of these nodes, in the order of its queue."""
    numbers = np.concatenate([_calls_on(plan, index, replica) for index in nodes])
    ordered: list[int] = numbers[np.argsort(plan.table.position[numbers], kind="stable")].tolist()
    return ordered


def _calls_on(plan: Plan, index: int, replica: int) -> NDArray[np.int64]:
    first, last = plan.call_offsets[index : index + 2]
    own: NDArray[np.int64] = first + np.flatnonzero(plan.table.replica[first:last] == replica)
    return own


def _rows_on(plan: Plan, index: int, replica: int) -> int:
    own = _calls_on(plan, index, replica)
    return int((plan.table.stop[own] - plan.table.start[own]).sum())


def _say_load(plan: Plan, rows: Mapping[str, int], calls: int) -> str:
    if calls:
        loads = [f"{count(number, 'row')} of {name}" for name, number in rows.items()]
        return f"{count(calls, 'call')}, {', '.join(loads)}"
    totals = [f"{int(plan.rows[name].read * plan.samples):,} of {name}" for name in rows]
    return f"idle; all rows are read by other replicas: {', '.join(totals)}"
