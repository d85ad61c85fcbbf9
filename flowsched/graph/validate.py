"""What is wrong with a declared graph: every problem in one look."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from flowsched.errors import Problem
from flowsched.graph.fields import Where, field_problems
from flowsched.graph.readable import read_graph
from flowsched.graph.structure import structure_problems


def find_problems(given: Mapping[str, Any], refused: Collection[Where] = ()) -> list[Problem]:
    """Return all problems of a graph.

    Names and structure are looked at wherever the fields that they need can be read, so that mending what is
    reported brings no more to light; and what only follows from a field that cannot be read is not reported.

    Args:
        given: the graph as its fields, right or wrong; ``outputs`` may be None.
        refused: places whose values are refused already, which are neither reported again nor built upon.
    """
    problems = [problem for problem in field_problems(given) if problem.where not in refused]
    unsound = {*refused, *(problem.where for problem in problems)}
    return [*problems, *structure_problems(read_graph(given, unsound))]
