"""Where does a sample go, node by node?"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowsched.inspect.align import align
from flowsched.inspect.explain_edge import say_rows
from flowsched.inspect.explain_node import call_facts
from flowsched.inspect.explanation import Explanation
from flowsched.inspect.lineage import Passage, follow_sample
from flowsched.inspect.listing import pick, say_made
from flowsched.plan import Plan

_MOST_REPLICAS = 3


def explain_sample(plan: Plan, sample: int, limit: int | None) -> Explanation:
    """Explain which calls read a sample, and which rows it becomes; ``limit`` bounds the calls of each node."""
    passages = follow_sample(plan, sample).values()
    rows = [("node", "reads", "replica", "call", "makes")]
    rows += [
        (
            passage.node,
            say_rows(passage.reads),
            _say_replicas(plan, passage),
            _say_calls(plan, passage),
            say_rows(passage.makes),
        )
        for passage in passages
    ]
    facts = {
        "kind": "sample",
        "sample": sample,
        "passages": [passage_facts(plan, passage, limit) for passage in passages],
    }
    return Explanation((f"{say_sample(plan, sample)} through {plan.graph.name}", *align(rows)), facts)


def passage_facts(plan: Plan, passage: Passage, limit: int | None) -> dict[str, Any]:
    """Return a passage as plain data, with at most ``limit`` of its calls."""
    picked = pick(len(passage.calls), limit)
    return {
        "node": passage.node,
        "reads": list(passage.reads),
        "makes": list(passage.makes),
        "calls": [call_facts(plan, passage.calls[at]) for at in picked.places],
        "left_out": picked.left_out,
    }


def say_sample(plan: Plan, sample: int) -> str:
    """Return a sample with the range that its id is from."""
    return f"sample {sample} (of 0-{plan.samples - 1})"


def _say_calls(plan: Plan, passage: Passage) -> str:
    said = [say_made(plan, passage.calls[at]) for at in sorted({0, len(passage.calls) - 1})]
    if len(passage.calls) > 2:
        said.insert(1, f"({len(passage.calls) - 2:,} more)")
    return " + ".join(said)


def _say_replicas(plan: Plan, passage: Passage) -> str:
    serving = plan.table.replica[passage.calls.start : passage.calls.stop]
    replicas = np.unique(serving).tolist()
    return ", ".join(map(str, replicas)) if len(replicas) <= _MOST_REPLICAS else f"{len(replicas)} replicas"
