"""Pass 0, validate: whether the graph can be planned for this number of samples."""

from __future__ import annotations

from collections.abc import Mapping

from flowsched.errors import PlanError, Problem
from flowsched.graph import Graph
from flowsched.graph.rows import NodeRows, find_rows


def validate_sizes(graph: Graph, samples: int) -> Mapping[str, NodeRows]:
    """Return the rows of every node for ``samples`` samples.

    Raises:
        PlanError: samples is no whole number of 0 or more, or sizes cannot meet or be cut.
    """
    subject = f"graph {graph.name!r} with {samples!r} samples"
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < 0:
        mend = "Give the number of rows of the step's input, a whole number of 0 or more"
        problem = Problem(
            "bad-samples", "samples", f"samples is {samples!r} ({type(samples).__name__})", mend
        )
        raise PlanError(subject, [problem])
    rows, problems = find_rows(graph, samples)
    if problems:
        raise PlanError(subject, problems)
    return rows
