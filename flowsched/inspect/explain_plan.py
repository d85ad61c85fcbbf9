"""How is every node split, what does it read, and who reads it?"""

from __future__ import annotations

from flowsched.graph.topology import topological_order
from flowsched.inspect.arithmetic import say_split
from flowsched.inspect.explain_node import say_neighbours
from flowsched.inspect.explanation import Explanation
from flowsched.inspect.reasons import reasons_of, served_by_owners
from flowsched.inspect.summary import count_idle, summarise
from flowsched.inspect.text import heading, wrap
from flowsched.plan import Plan


def explain_plan(plan: Plan) -> Explanation:
    """Explain all nodes in short, producers first."""
    summaries = summarise(plan)
    lines, nodes = [heading(plan)], []
    served = served_by_owners(plan.graph)
    for index in topological_order(plan.graph):
        summary = summaries[index]
        split, reasons = say_split(summary), reasons_of(plan, summary, served)
        lines += ["", *wrap(f"  {summary.node}: ", say_neighbours(plan, summary))]
        for sentence in (split, *reasons):
            lines += wrap("    ", sentence)
        nodes.append({**summary.to_dict(), "split": split, "reasons": reasons})
    facts = {
        "kind": "plan",
        "graph": plan.graph.name,
        "samples": plan.samples,
        "hash": plan.hash,
        "calls": plan.table.calls,
        "fragments": plan.table.fragments,
        "replicas": sum(owner.replicas for owner in plan.graph.owners()),
        "idle": count_idle(plan),
        "nodes": nodes,
    }
    return Explanation(tuple(lines), facts)
