"""The numbers of each node agree with a plain count over its calls."""

from __future__ import annotations

import json
from collections import Counter, defaultdict

from hypothesis import given, settings

import flowsched as fs
from flowsched.inspect.summary import NodeSummary, count_idle
from tests.inspect.plans import grpo_plan
from tests.strategies import Workload, graphs


@settings(max_examples=100, deadline=None)
@given(graphs(max_samples=60, max_rows=400, max_replicas=12))
def test_every_number_agrees_with_a_plain_count_over_the_calls(work: Workload) -> None:
    plan = fs.compile(work.graph, work.samples)
    for index, summary in enumerate(plan.summary()):
        assert summary == _counted(plan, index)


@settings(max_examples=100, deadline=None)
@given(graphs(max_samples=20, max_rows=200, max_replicas=12))
def test_a_replica_is_idle_only_if_no_node_that_it_serves_uses_it(work: Workload) -> None:
    plan = fs.compile(work.graph, work.samples)
    busy = {(work.graph.owner(calls.name).name, call.replica) for calls in plan for call in calls}
    assert count_idle(plan) == sum(owner.replicas for owner in work.graph.owners()) - len(busy)


def _counted(plan: fs.Plan, index: int) -> NodeSummary:
    node = plan.graph.nodes[index]
    owner = plan.graph.owner(node.name)
    calls = list(plan[node.name])
    rows_of: dict[int, int] = defaultdict(int)
    for call in calls:
        rows_of[call.replica] += _rows_read(node, call.stop - call.start)
    calls_of = Counter(call.replica for call in calls)
    per_call = [[len(feed.fragments) for feed in call.feeds] for call in calls]
    return NodeSummary(
        node=node.name,
        inputs=node.inputs,
        owner=owner.name,
        replicas=owner.replicas,
        used=len(calls_of),
        calls=len(calls),
        waves=max(calls_of.values(), default=0),
        rows=sum(rows_of.values()),
        rows_made=sum(call.stop - call.start for call in calls),
        batch_size=node.batch_size,
        unit=max(node.group, node.collapse),
        loads=_largest_first(Counter(rows_of.values())),
        call_counts=_largest_first(Counter(calls_of.values())),
        call_sizes=_largest_first(Counter(_rows_read(node, call.stop - call.start) for call in calls)),
        fragments=sum(map(sum, per_call)),
        fragments_per_call=tuple(
            (min(row[i] for row in per_call), max(row[i] for row in per_call)) if per_call else (0, 0)
            for i in range(len(node.inputs))
        ),
    )


def _rows_read(node: fs.Node, made: int) -> int:
    return made // node.expand * node.collapse


def _largest_first(counts: Counter[int]) -> tuple[tuple[int, int], ...]:
    return tuple(sorted(counts.items(), reverse=True))


def test_a_summary_goes_to_json_with_its_derived_numbers() -> None:
    best = next(summary for summary in grpo_plan().summary() if summary.node == "best")
    assert json.loads(json.dumps(best.to_dict())) == {
        "node": "best",
        "inputs": ["reward", "policy"],
        "owner": "best",
        "replicas": 9,
        "used": 5,
        "idle": 4,
        "calls": 5,
        "waves": 1,
        "rows": 20,
        "rows_made": 5,
        "batch_size": None,
        "unit": 4,
        "largest_call": 4,
        "smallest_call": 4,
        "loads": [{"rows": 4, "replicas": 5}],
        "call_counts": [{"calls": 1, "replicas": 5}],
        "call_sizes": [{"rows": 4, "calls": 5}],
        "fragments": 13,
        "fragments_per_call": [
            {"input": "reward", "fewest": 1, "most": 2},
            {"input": "policy", "fewest": 1, "most": 1},
        ],
    }
