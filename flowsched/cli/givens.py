"""What a run is given beside its graph: models, and batches for the sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flowsched.address import Job
    from flowsched.graph import Graph
    from flowsched.plan import Plan


def find_models(job: Job, address: str | None) -> Mapping[str, Any]:
    """Return the models at an address, by default those beside the graph.

    Raises:
        AddressError: there are none.
    """
    from flowsched.address import load_object
    from flowsched.errors import AddressError

    models = job.models if address is None else load_object(address, "models")
    if models is None:
        raise AddressError(
            f"{job.address} holds no models. Give --models file.py (its `models`), file.py:name or "
            "package.module:name, a dict by node"
        )
    found: Mapping[str, Any] = models
    return found


def find_inputs(
    job: Job, graph: Graph, address: str | None, samples: int | None
) -> tuple[Mapping[str, Any], int]:
    """Return the batches at an address, by default those beside the graph, and how many rows they have.

    Args:
        job: the job.
        graph: its graph, changed or not.
        address: the address; None for the job's own data.
        samples: how many rows are taken; None for all.

    Raises:
        AddressError: there is no data.
        InputError: it does not fit the graph, or has fewer rows than are asked for.
    """
    from flowsched.address import load_data
    from flowsched.batch import take
    from flowsched.errors import AddressError, InputError, Problem
    from flowsched.runtime.inputs import count_inputs

    data = job.data if address is None else load_data(address, graph.sources)
    if data is None:
        raise AddressError(f"{job.address} holds no data. Give --data, batches by source")
    rows = count_inputs(graph, data)
    if samples is None or samples == rows:
        return data, rows
    if samples > rows:
        message = f"{samples} samples are asked for, the data has {rows}"
        problem = Problem("wrong-samples", "--samples", message, "Ask for fewer, or give more data")
        raise InputError(f"input of graph {graph.name!r}", [problem])
    return {name: take(batch, 0, samples) for name, batch in data.items()}, samples


def refuse_other_samples(plan: Plan, rows: int, address: str) -> None:
    """Refuse data of another size than the saved plan at an address was made for.

    Raises:
        InputError: likewise.
    """
    from flowsched.errors import InputError, Problem

    if rows == plan.samples:
        return
    message = f"the data has {rows} samples, and {address} is a plan for {plan.samples}"
    mend = f"Plan the graph for {rows} samples"
    if rows > plan.samples:
        mend = f"Give --samples {plan.samples} to take the first {plan.samples}, or plan the graph for {rows}"
    problem = Problem("wrong-samples", "--data", message, mend)
    raise InputError(f"input of graph {plan.graph.name!r}", [problem])
