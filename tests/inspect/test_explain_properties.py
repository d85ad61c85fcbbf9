"""Explanations agree with plain loops over calls and rows, for any graph and sizes."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

import flowsched as fs
from flowsched.graph.topology import topological_order
from tests.strategies import Workload, graphs

_SMALL = graphs(max_nodes=7, max_samples=24, max_rows=200, max_replicas=8)


def _samples_in_rows(plan: fs.Plan) -> dict[str, tuple[list[set[int]], list[set[int]]]]:
    """Return for each node which samples are in each row that it reads, and in each row that it makes."""
    made = {name: [{sample} for sample in range(plan.samples)] for name in plan.graph.sources}
    found = {}
    for index in topological_order(plan.graph):
        node = plan.graph.nodes[index]
        rows = plan.rows[node.name]
        reads: list[set[int]] = [set() for _ in range(int(rows.read * plan.samples))]
        for name, times in zip(node.inputs, rows.times, strict=True):
            for row, samples in enumerate(reads):
                samples |= made[name][row // times]
        joined = [
            set().union(*reads[row : row + node.collapse]) for row in range(0, len(reads), node.collapse)
        ]
        made[node.name] = [samples for samples in joined for _ in range(node.expand)]
        found[node.name] = reads, made[node.name]
    return found


def _rows_with(sample: int, rows: list[set[int]]) -> list[int]:
    at = [row for row, samples in enumerate(rows) if sample in samples]
    return [at[0], at[-1] + 1]


@settings(max_examples=150, deadline=None)
@given(_SMALL, st.data())
def test_a_sample_is_followed_to_the_first_and_last_row_that_it_reaches(
    work: Workload, data: st.DataObject
) -> None:
    assume(work.samples > 0)
    plan = fs.compile(work.graph, work.samples)
    sample = data.draw(st.integers(0, work.samples - 1))
    passages = plan.explain(sample=sample, limit=None).to_dict()["passages"]
    expected = _samples_in_rows(plan)
    assert [passage["node"] for passage in passages] == list(expected)
    for passage in passages:
        reads, makes = expected[passage["node"]]
        assert passage["reads"] == _rows_with(sample, reads)
        assert passage["makes"] == _rows_with(sample, makes)
        start, stop = passage["reads"]
        assert [call["call"] for call in passage["calls"]] == [
            call.name
            for call, number in zip(plan[passage["node"]], plan[passage["node"]].numbers, strict=True)
            if plan.table.start[number] < stop and plan.table.stop[number] > start
        ]


@settings(max_examples=100, deadline=None)
@given(_SMALL, st.data())
def test_an_edge_lists_each_fragment_of_the_consumers_calls(work: Workload, data: st.DataObject) -> None:
    plan = fs.compile(work.graph, work.samples)
    node = data.draw(st.sampled_from(work.graph.nodes))
    place = data.draw(st.integers(0, len(node.inputs) - 1))
    facts = plan.explain(edge=(node.inputs[place], node.name), limit=None).to_dict()
    feeds = [(call, call.feeds[place].fragments) for call in plan[node.name]]
    assert [(fact["made_by"], *fact["rows"], fact["read_by"]) for fact in facts["listed"]] == [
        (part.producer, part.start, part.stop, call.name) for call, parts in feeds for part in parts
    ]
    assert facts["consumer_calls_merging"] == sum(len(parts) > 1 for _, parts in feeds)
    if node.inputs[place] in plan.graph:
        readers = [part.producer for _, parts in feeds for part in parts]
        cut = sum(readers.count(call.name) > 1 for call in plan[node.inputs[place]])
        assert (facts["producer_calls"], facts["producer_calls_cut"]) == (len(plan[node.inputs[place]]), cut)


@settings(max_examples=100, deadline=None)
@given(_SMALL, st.data())
def test_the_rows_of_an_edges_fragments_are_the_rows_that_their_calls_read(
    work: Workload, data: st.DataObject
) -> None:
    plan = fs.compile(work.graph, work.samples)
    node = data.draw(st.sampled_from(work.graph.nodes))
    for name in node.inputs:
        covered: dict[str, list[int]] = {}
        for fact in plan.explain(edge=(name, node.name), limit=None).to_dict()["listed"]:
            covered.setdefault(fact["read_by"], []).extend(range(*fact["as_rows"]))
        for call, number in zip(plan[node.name], plan[node.name].numbers, strict=True):
            assert covered[call.name] == list(range(plan.table.start[number], plan.table.stop[number]))


@settings(max_examples=100, deadline=None)
@given(_SMALL, st.data())
def test_a_replicas_queue_is_all_its_calls_in_the_order_of_their_positions(
    work: Workload, data: st.DataObject
) -> None:
    plan = fs.compile(work.graph, work.samples)
    owner = data.draw(st.sampled_from(work.graph.owners()))
    replica = data.draw(st.integers(0, owner.replicas - 1))
    facts = plan.explain(replica=(owner.name, replica), limit=None).to_dict()
    served = [node.name for node in work.graph if work.graph.owner(node.name) == owner]
    calls = [call for name in served for call in plan[name] if call.replica == replica]
    assert [fact["call"] for fact in facts["listed"]] == [
        call.name for call in sorted(calls, key=lambda call: call.position)
    ]
    assert [fact["position"] for fact in facts["listed"]] == list(range(len(calls)))
    assert facts["idle"] is (not calls)
    assert sorted(facts["serves"]) == sorted(served)


@settings(max_examples=100, deadline=None)
@given(graphs(max_samples=2_000, max_rows=5_000))
def test_any_plan_prints_and_explains_itself_in_lines_of_at_most_110_columns(work: Workload) -> None:
    plan = fs.compile(work.graph, work.samples)
    edges = [(name, node.name) for node in work.graph for name in node.inputs]
    texts = [str(plan), str(plan.explain()), *(str(plan.explain(node=node.name)) for node in work.graph)]
    texts += [str(plan.explain(edge=edge)) for edge in edges]
    texts += [str(plan.explain(replica=(owner.name, 0))) for owner in work.graph.owners()]
    if work.samples:
        last = work.samples - 1
        texts.append(str(plan.explain(sample=last)))
        texts += [str(plan.explain(sample=last, node=node.name)) for node in work.graph]
        texts += [str(plan.explain(sample=last, edge=edge)) for edge in edges]
    assert max(len(line) for text in texts for line in text.splitlines()) <= 110
