"""Where does a sample go, node by node?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowsched.inspect.align import align
from flowsched.inspect.explain_edge import say_rows
from flowsched.inspect.explain_node import call_facts
from flowsched.inspect.explanation import Explanation
from flowsched.inspect.lineage import Passage, follow_sample
from flowsched.inspect.listing import WIDTH, pick, say_made
from flowsched.plan import Plan

_MOST_REPLICAS = 3


def explain_sample(plan: Plan, sample: int, limit: int | None) -> Explanation:
    """Explain which calls read a sample, and which rows it becomes; ``limit`` bounds the calls of each node."""
    passages = tuple(follow_sample(plan, sample).values())
    facts = {
        "kind": "sample",
        "sample": sample,
        "passages": [passage_facts(plan, passage, limit) for passage in passages],
    }
    heading = f"{say_sample(plan, sample)} through {plan.graph.name}"
    return Explanation((heading, *_passage_table(plan, passages)), facts)


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


def _passage_table(plan: Plan, passages: Sequence[Passage]) -> list[str]:
    """Return one line a node, with its first and last call, or its first alone where both have no room."""
    for last in (True, False):
        rows = [("node", "reads", "replica", "call", "makes")]
        rows += [
            (
                passage.node,
                say_rows(passage.reads),
                _say_replicas(plan, passage),
                _say_calls(plan, passage, last=last),
                say_rows(passage.makes),
            )
            for passage in passages
        ]
        lines = align(rows)
        if max(map(len, lines)) <= WIDTH:
            break
    return lines


def _say_calls(plan: Plan, passage: Passage, *, last: bool) -> str:
    calls = passage.calls
    shown = sorted({0, len(calls) - 1}) if last else [0]
    said = [say_made(plan, calls[at]) for at in shown]
    if len(calls) > len(shown):
        said.insert(1, f"({len(calls) - len(shown):,} more)")
    return " + ".join(said)


def _say_replicas(plan: Plan, passage: Passage) -> str:
    serving = plan.table.replica[passage.calls.start : passage.calls.stop]
    replicas = np.unique(serving).tolist()
    return ", ".join(map(str, replicas)) if len(replicas) <= _MOST_REPLICAS else f"{len(replicas)} replicas"
