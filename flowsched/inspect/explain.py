"""``plan.explain``: which question is asked of a plan, and who answers it."""

from __future__ import annotations

from flowsched.inspect.errors import ExplainError
from flowsched.inspect.explain_edge import explain_edge
from flowsched.inspect.explain_node import explain_node
from flowsched.inspect.explain_plan import explain_plan
from flowsched.inspect.explain_replica import explain_replica
from flowsched.inspect.explain_sample import explain_sample
from flowsched.inspect.explain_sample_at import (
    explain_sample_at_node,
    explain_sample_on_edge,
    explain_sample_on_replica,
)
from flowsched.inspect.explanation import Explanation
from flowsched.inspect.hints import PYTHON_HINTS, Hints
from flowsched.inspect.subjects import Edge, Replica, find_edge, find_node, find_replica, find_sample, whole
from flowsched.plan import Plan

_TOGETHER = ({"node", "sample"}, {"node", "replica"}, {"edge", "sample"}, {"sample", "replica"})


def explain(
    plan: Plan,
    *,
    node: str | None = None,
    edge: Edge | None = None,
    sample: int | None = None,
    replica: Replica | None = None,
    limit: int | None = 12,
    hints: Hints = PYTHON_HINTS,
) -> Explanation:
    """Answer a question about a plan.

    Without an argument, it says for every node how its rows are divided, what it reads and who reads it.

    Args:
        plan: the plan.
        node: name of a node: the arithmetic of its split, and why it is so.
        edge: ``"policy->reward"`` or ``("policy", "reward")``: how the producer's calls are divided among the
            consumer's. The producer may be a source.
        sample: a sample id: where it goes, node by node.
        replica: ``"policy.1"`` or ``("policy", 1)``: its calls, in the order in which it works them off.
        limit: the most calls or fragments that are listed, 2 or more; None lists all.
        hints: how the answer says where there is more.

    ``sample`` goes together with each of the others, and ``node`` with ``replica``.

    Raises:
        ExplainError: the graph has no such node or edge, the plan no such sample or replica, or the questions
            have no answer together.

    >>> import flowsched as fs
    >>> nodes = [
    ...     fs.Node("policy", inputs=["prompts"], replicas=2, batch_size=4),
    ...     fs.Node("reward", inputs=["policy"], replicas=8, batch_size=2),
    ... ]
    >>> plan = fs.compile(fs.Graph("ppo", sources=["prompts"], nodes=nodes), samples=16)
    >>> print(explain(plan, sample=5))
    sample 5 (of 0-15) through ppo
      node    reads  replica  call             makes
      policy  [5:6]  1        policy.1.0[4:8]  [5:6]
      reward  [5:6]  2        reward.2.0[4:6]  [5:6]
    """
    asked = {"node": node, "edge": edge, "sample": sample, "replica": replica}
    given = [name for name, value in asked.items() if value is not None]
    if len(given) > 1 and set(given) not in _TOGETHER:
        raise ExplainError.mixed(given)
    if limit is not None and ((most := whole(limit)) is None or most < 2):
        raise ExplainError.low_limit(limit)
    index = None if node is None else find_node(plan, node)
    ends = None if edge is None else find_edge(plan, edge)
    place = None if replica is None else find_replica(plan, replica)
    if sample is not None:
        sample = find_sample(plan, sample)
        if index is not None:
            return explain_sample_at_node(plan, sample, index, limit)
        if ends is not None:
            return explain_sample_on_edge(plan, sample, *ends, limit)
        if place is not None:
            return explain_sample_on_replica(plan, sample, *place, limit)
        return explain_sample(plan, sample, limit)
    if ends is not None:
        return explain_edge(plan, *ends, limit)
    if place is not None:
        return explain_replica(plan, *place, limit, node=index)
    return explain_plan(plan) if index is None else explain_node(plan, index, limit, hints)
