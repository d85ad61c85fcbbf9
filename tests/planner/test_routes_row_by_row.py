"""The planner's shares, cuts and routes equal what plain loops find, one row after the other.

The loops know nothing of intervals, prefix sums or ratios: units are dealt one by one, and the parent of a row
is the row of the input that covers the same part of the step.
"""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings

import flowsched as fs
from flowsched.plan import Call, Feed, Fragment
from tests.strategies import Workload, graphs

SMALL = graphs(max_nodes=6, max_samples=40, max_rows=120, max_replicas=7, max_batch_size=12)


@settings(max_examples=150, deadline=None)
@given(SMALL)
def test_rows_are_dealt_as_by_hand(work: Workload) -> None:
    plan = fs.compile(work.graph, work.samples)
    rows = _count_rows(work)
    for node in work.graph:
        first, last = plan[node.name].numbers.start, plan[node.name].numbers.stop
        columns = (plan.table.replica, plan.table.start, plan.table.stop)
        dealt = list(zip(*(column[first:last].tolist() for column in columns), strict=True))
        replicas = work.graph.owner(node.name).replicas
        assert dealt == _deal(rows[node.name][0], node.unit, replicas, node.batch_size), node.name


@settings(max_examples=150, deadline=None)
@given(SMALL)
def test_every_call_reads_what_plain_loops_find_row_by_row(work: Workload) -> None:
    plan = fs.compile(work.graph, work.samples)
    rows = _count_rows(work)
    made: dict[str, list[str]] = {name: [name] * work.samples for name in work.graph.sources}
    for node in plan:
        made[node.name] = [call.name for call in node for _ in range(call.start, call.stop)]
    for node in plan:
        declared = work.graph[node.name]
        for call in node:
            read = range(
                call.start // declared.expand * declared.collapse,
                call.stop // declared.expand * declared.collapse,
            )
            for name, feed in zip(declared.inputs, call.feeds, strict=True):
                assert list(feed.fragments) == _fragments(read, rows[node.name][0], made[name]), str(call)


@settings(max_examples=100, deadline=None)
@given(SMALL)
def test_an_input_that_is_shared_by_rows_says_by_how_many(work: Workload) -> None:
    plan = fs.compile(work.graph, work.samples)
    rows = _count_rows(work)
    for node in plan:
        for call in node:
            for name, feed in zip(work.graph[node.name].inputs, call.feeds, strict=True):
                own = work.samples if name in work.graph.sources else rows[name][1]
                assert own * feed.times == rows[node.name][0]


@settings(max_examples=100, deadline=None)
@given(SMALL)
def test_running_the_calls_in_sequence_never_misses_rows(work: Workload) -> None:
    plan = fs.compile(work.graph, work.samples)
    calls: list[Call] = [call for node in plan for call in node]
    there = {(name, row) for name in work.graph.sources for row in range(work.samples)}
    queued: dict[tuple[str, int], int] = {}
    ended: set[str] = set()
    for _, call in sorted(zip(plan.table.sequence.tolist(), calls, strict=True), key=lambda pair: pair[0]):
        owner = work.graph.owner(call.node).name, call.replica
        assert call.position == queued.get(owner, 0)
        queued[owner] = call.position + 1
        assert all(row in there for feed in call.feeds for row in _rows_of(feed)), str(call)
        for name in work.graph[call.node].after:
            assert all(other.name in ended for other in plan[name])
        ended.add(call.name)
        there |= {(call.name, row) for row in range(call.start, call.stop)}
    assert ended == {call.name for call in calls}


def _count_rows(work: Workload) -> dict[str, tuple[int, int]]:
    """Return the rows that each node reads and makes, found by going over the nodes until nothing changes."""
    made = dict.fromkeys(work.graph.sources, work.samples)
    rows: dict[str, tuple[int, int]] = {}
    while len(rows) < len(work.graph):
        for node in work.graph:
            if node.name not in rows and all(name in made for name in node.inputs):
                read = max(made[name] for name in node.inputs)
                made[node.name] = read * node.expand // node.collapse
                rows[node.name] = (read, made[node.name])
    return rows


def _deal(rows: int, unit: int, replicas: int, batch_size: int | None) -> list[tuple[int, int, int]]:
    """Return (replica, start, stop) of each call, dealing one unit after the other."""
    loads = [0] * replicas
    for i in range(rows // unit):
        loads[i % replicas] += 1
    sizes: list[list[int]] = []
    for load in loads:
        count = 1
        while batch_size is not None and count * (batch_size // unit) < load:
            count += 1
        calls = [0] * count
        for i in range(load):
            calls[i % count] += 1
        sizes.append([size for size in calls if size])
    dealt, row = [], 0
    for wave in range(max(map(len, sizes))):
        for replica, calls in enumerate(sizes):
            if wave < len(calls):
                dealt.append((replica, row, row + calls[wave] * unit))
                row += calls[wave] * unit
    return dealt


def _fragments(read: range, rows: int, made: list[str]) -> list[Fragment]:
    """Return the fragments that hold the parents of the rows of one call.

    Args:
        read: the rows of the call.
        rows: rows that its node reads in all.
        made: for each row of the input, who makes it.
    """
    parents: list[int] = []
    for row in read:
        parent = 0
        while Fraction(parent + 1, len(made)) <= Fraction(row, rows):
            parent += 1
        if parent not in parents:
            parents.append(parent)
    fragments: list[Fragment] = []
    for parent in parents:
        if fragments and fragments[-1].producer == made[parent]:
            fragments[-1] = Fragment(made[parent], fragments[-1].start, parent + 1)
        else:
            fragments.append(Fragment(made[parent], parent, parent + 1))
    return fragments


def _rows_of(feed: Feed) -> list[tuple[str, int]]:
    return [
        (fragment.producer, row)
        for fragment in feed.fragments
        for row in range(fragment.start, fragment.stop)
    ]
