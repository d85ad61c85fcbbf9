"""The slow, obvious way to run a graph: a plain loop over samples, with which results are compared.

It makes no plan: each node calls its worker on one row (or on one group that must stay together) at a time, in
order, with a single replica. Whatever a backend returns must equal it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from flowsched.batch import Batch, concat, count_rows, take, with_lengths
from flowsched.errors import OutputError
from flowsched.graph import Graph, Node
from flowsched.graph.rows import NodeRows
from flowsched.graph.topology import topological_order
from flowsched.planner.validate import validate_sizes
from flowsched.runtime.binding import Binding, bind_models
from flowsched.runtime.context import Context, ReplicaContext
from flowsched.runtime.inputs import count_inputs
from flowsched.seeds import draw_entropy


def run_reference(
    graph: Graph, models: Mapping[str, Any], inputs: Mapping[str, Batch], *, seed: int = 0, step: int = 0
) -> dict[str, Batch]:
    """Run one step of a graph sample by sample.

    Args:
        graph: the graph.
        models: as for :func:`flowsched.run`.
        inputs: one batch for each source.
        seed: the session's seed.
        step: the number of the step in its session.

    Returns:
        One batch for each output of the graph, rows in the order of the inputs.

    Raises:
        OutputError: a worker returned another number of rows than it must.
    """
    samples = count_inputs(graph, inputs)
    rows = validate_sizes(graph, samples)
    binding = bind_models(graph, models)
    replicas = {node.name: binding.build(ReplicaContext(node.name, 0, 1, None)) for node in graph.owners()}
    made: dict[str, Batch] = dict(inputs)
    for index in topological_order(graph):
        node = graph.nodes[index]
        replica = replicas[graph.owner(node.name).name]
        entropy = draw_entropy(seed, step, node.name)
        made[node.name] = _run_node(node, rows[node.name], binding, replica, made, samples, (step, entropy))
    return {name: made[name] for name in graph.outputs}


def _run_node(
    node: Node,
    rows: NodeRows,
    binding: Binding,
    replica: object,
    made: Mapping[str, Batch],
    samples: int,
    drawn: tuple[int, int],
) -> Batch:
    bound = binding.nodes[node.name]
    worker = bound.worker(replica)
    pieces = []
    for start in range(0, int(rows.read * samples), node.unit):
        stop = start + node.unit
        batches = [
            _rows_of(made[name], start, stop, times)
            for name, times in zip(node.inputs, rows.times, strict=True)
        ]
        given = {"context": _context(node, rows, start, stop, drawn)} if bound.wants_context else {}
        piece = with_lengths(worker(*batches, **given), bound.padding)
        expected = node.unit // node.collapse * node.expand
        if count_rows(piece) not in (None, expected):
            problem, mend = f"it returned {count_rows(piece)} rows, not {expected}", "Return one for each row"
            call = f"rows {start}:{stop}"
            raise OutputError(problem, mend, node=node.name, replica=0, call=call, samples=(start, stop))
        pieces.append(piece)
    return concat(pieces, bound.padding) if pieces else []


def _rows_of(batch: Batch, start: int, stop: int, times: int) -> Batch:
    """Return the rows ``[start, stop)`` of a batch whose rows stand for ``times`` rows each, one by one."""
    if count_rows(batch) is None:
        return batch
    return concat([take(batch, row // times, row // times + 1) for row in range(start, stop)])


def _context(node: Node, rows: NodeRows, start: int, stop: int, drawn: tuple[int, int]) -> Context:
    step, entropy = drawn
    sample_ids = np.array([rows.samples_of(row, row + 1)[0] for row in range(start, stop)])
    made = start // node.collapse * node.expand, stop // node.collapse * node.expand
    return Context(node.name, 0, 1, None, step, start, stop, *made, sample_ids, lambda: False, entropy)
