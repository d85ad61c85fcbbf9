"""Whether what a step is given fits its graph: inputs, and the numbers of a session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from flowsched.batch import Batch, BatchError, count_rows
from flowsched.errors import InputError, Problem, say_known
from flowsched.graph import Graph
from flowsched.plan import Plan


def count_inputs(graph: Graph, inputs: Mapping[str, Batch] | None) -> int:
    """Return the number of rows that all sources have.

    Raises:
        InputError: sources are missing, surplus, no batches, hold no column, or disagree on rows.
    """
    rows: dict[str, int] = {}
    problems = list(_find_problems(graph, inputs, rows))
    if problems:
        raise InputError(f"input of graph {graph.name!r}", problems)
    return next(iter(rows.values()))


def refuse_other_rows(plan: Plan, inputs: Mapping[str, Batch] | None) -> None:
    """Refuse inputs that are not those that ``plan`` was made for.

    Raises:
        InputError: likewise, or they have another number of rows than the plan has samples.
    """
    refuse_other_samples(plan, count_inputs(plan.graph, inputs))


def refuse_other_samples(plan: Plan, samples: int) -> None:
    """Refuse a step of another number of samples than ``plan`` was made for.

    Raises:
        InputError: likewise.
    """
    if samples != plan.samples:
        mend = f"Compile a plan for {samples} samples, or use fs.start(graph, models), which plans for what comes"
        message = f"they have {samples} rows, the plan {plan.samples}"
        problem = Problem("wrong-samples", "inputs", message, mend)
        raise InputError(f"input of graph {plan.graph.name!r}", [problem])


def refuse_other_kind(value: object, kind: type, name: str, mend: str) -> None:
    """Refuse a value that is no ``kind``, such as a graph where a plan must be.

    Raises:
        InputError: it is none.
    """
    if not isinstance(value, kind):
        message = f"a {type(value).__name__} is no {kind.__name__}"
        raise InputError("session", [Problem("wrong-type", name, message, mend)])


def checked_whole(name: str, value: int, least: int) -> int:
    """Return ``value`` if it is a whole number of at least ``least``.

    Raises:
        InputError: it is not.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        mend = f"Give a whole number of {least} or more"
        problem = Problem("wrong-number", name, f"{name} is {value!r} ({type(value).__name__})", mend)
        raise InputError("session", [problem])
    return value


def _find_problems(
    graph: Graph, inputs: Mapping[str, Batch] | None, rows: dict[str, int]
) -> Iterator[Problem]:
    """Yield the problems of a step's inputs, and note the rows of each source that has some in ``rows``."""
    if not isinstance(inputs, Mapping):
        mend = f"Give a dict of one batch for each source: {', '.join(graph.sources)}"
        yield Problem("wrong-type", "inputs", f"a {type(inputs).__name__} is no mapping", mend)
        return
    for name in graph.sources:
        place, mend = f"source {name!r}", f"Give inputs[{name!r}], one batch of the step's samples"
        if name not in inputs:
            yield Problem("missing-input", place, "it has no input", mend)
            continue
        try:
            count = count_rows(inputs[name])
        except BatchError as error:
            yield Problem("bad-input", place, error.problem, error.mend)
            continue
        if count is None:
            # Taken as no rows at all, a forgotten input would be a step that does nothing and succeeds.
            yield Problem("bad-input", place, f"{inputs[name]!r} holds no column, and so no samples", mend)
        else:
            rows[name] = count
    for name in inputs:
        if name not in graph.sources:
            mend = say_known(str(name), graph.sources, "sources")
            yield Problem("surplus-input", f"inputs[{name!r}]", "the graph has no such source", mend)
    if len(set(rows.values())) > 1:
        listed = ", ".join(f"{name!r} has {count}" for name, count in rows.items())
        mend = "Give every source one row for each sample"
        yield Problem("rows-disagree", "inputs", f"sources disagree on rows: {listed}", mend)
