"""What a plan says of each call (what it waits for, reads and lets go) equals a plain reading of the table."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

import flowsched as fs
from flowsched.plan import Plan
from flowsched.runtime.program import Program
from tests.strategies import Workload, graphs

SMALL = graphs(max_nodes=7, max_samples=40, max_rows=120, max_replicas=6, max_batch_size=9)


def _producers(plan: Plan) -> list[list[int]]:
    """Return, for each call, the numbers of the calls that it reads from, one for each fragment."""
    calls = [plan.call(number) for number in range(plan.table.calls)]
    numbers = {call.name: number for number, call in enumerate(calls)}
    fragments = [[fragment for feed in call.feeds for fragment in feed.fragments] for call in calls]
    return [[numbers[one.producer] for one in own if one.producer in numbers] for own in fragments]


def _queues(plan: Plan) -> dict[tuple[str, int], list[int]]:
    """Return the calls of each replica in the order of their positions."""
    queues: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for number in range(plan.table.calls):
        call = plan.call(number)
        owner = plan.graph.owner(call.node).name
        queues.setdefault((owner, call.replica), []).append((call.position, number))
    return {replica: [number for _, number in sorted(queue)] for replica, queue in queues.items()}


@settings(max_examples=60, deadline=None)
@given(SMALL)
def test_readers_and_producers_are_the_two_ends_of_the_fragments(work: Workload) -> None:
    plan = fs.compile(work.graph, work.samples)
    program = Program(plan)
    readers: dict[int, list[int]] = {call: [] for call in range(plan.table.calls)}
    for call, producers in enumerate(_producers(plan)):
        assert list(program.links[call].producers) == producers
        for producer in producers:
            readers[producer].append(call)
    for call, expected in readers.items():
        assert list(program.links[call].readers) == expected
        assert program.readers[call] == len(expected)


@settings(max_examples=60, deadline=None)
@given(SMALL)
def test_successors_are_the_next_in_each_replicas_queue(work: Workload) -> None:
    plan = fs.compile(work.graph, work.samples)
    program = Program(plan)
    for replica, queue in _queues(plan).items():
        for call, following in zip(queue, [*queue[1:], -1], strict=True):
            assert program.links[call].successor == following
            assert (program.links[call].owner, program.links[call].replica) == replica


@settings(max_examples=60, deadline=None)
@given(SMALL)
def test_waits_are_producers_the_call_before_and_the_nodes_it_comes_after(work: Workload) -> None:
    plan = fs.compile(work.graph, work.samples)
    program = Program(plan)
    behind = {call for queue in _queues(plan).values() for call in queue[1:]}
    for call, producers in enumerate(_producers(plan)):
        node = plan.graph[plan.call(call).node]
        after = sum(1 for name in node.after if len(plan[name]))
        assert program.waits[call] == len(producers) + (call in behind) + after


@settings(max_examples=60, deadline=None)
@given(SMALL)
def test_reads_give_each_row_of_a_call_its_own_row_of_each_input(work: Workload) -> None:
    plan = fs.compile(work.graph, work.samples)
    program = Program(plan)
    for call in range(plan.table.calls):
        start, stop = int(plan.table.start[call]), int(plan.table.stop[call])
        times = plan.rows[plan.call(call).node].times
        for read, each in zip(program.links[call].reads, times, strict=True):
            found: list[int] = []
            for producer, first, last in read.fragments:
                shift = plan.made_rows(producer)[0] if producer >= 0 else 0
                found += range(first + shift, last + shift)
            spread = [row for row in found for _ in range(read.times)][read.start : read.stop]
            assert spread == [row // each for row in range(start, stop)]


@settings(max_examples=60, deadline=None)
@given(SMALL)
def test_spans_are_what_running_the_calls_one_by_one_keeps(work: Workload) -> None:
    plan = fs.compile(work.graph, work.samples)
    readers = {call: set[int]() for call in range(plan.table.calls)}
    producers = _producers(plan)
    for call, own in enumerate(producers):
        for producer in own:
            readers[producer].add(call)
    most = [1] * len(plan.graph.nodes)
    needed: list[set[int]] = [set() for _ in plan.graph.nodes]
    for call in np.argsort(plan.table.sequence).tolist():
        index = int(plan.table.node[call])
        needed[index].add(call)
        most[index] = max(most[index], call - min(needed[index]) + 1)
        if not readers[call]:
            needed[index].discard(call)
        for producer in producers[call]:
            readers[producer].discard(call)
            if not readers[producer]:
                needed[plan.table.node[producer]].discard(producer)
    assert Program(plan).spans == most


def test_a_plan_of_no_samples_has_no_calls() -> None:
    plan = fs.compile(fs.Graph("one", ["x"], [fs.Node("a", ["x"]), fs.Node("b", ["a"], after=["a"])]), 0)
    program = Program(plan)
    assert plan.table.calls == len(program.waits) == len(program.readers) == 0
    assert program.spans == [1, 1]


def test_outputs_are_those_of_the_graph() -> None:
    graph = fs.Graph("two", ["x"], [fs.Node("a", ["x"], batch_size=1), fs.Node("b", ["a"])], outputs=["a"])
    plan = fs.compile(graph, 2)
    assert [Program(plan).links[call].is_output for call in range(3)] == [True, True, False]
