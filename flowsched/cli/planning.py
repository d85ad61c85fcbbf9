"""The plan that a command is about: saved in a file, or compiled from a graph for a number of samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from flowsched.address import Job
    from flowsched.graph import Graph
    from flowsched.plan import Plan


def find_plan(address: str, samples: int | None, settings: Sequence[str] | None) -> Plan:
    """Return the plan at an address, or that of the graph there.

    Args:
        address: a plan file or the address of a graph.
        samples: the samples of the step; None for those that the plan has, or the data beside the graph.
        settings: changes to the graph's fields.

    Raises:
        BadParameter: samples or settings do not go with a saved plan, or nothing says how many samples.
        FlowschedError: the graph, the plan file or the data is refused.
    """
    from flowsched.address import load_job
    from flowsched.cli.settings import apply_settings
    from flowsched.plan.files import is_plan_file
    from flowsched.planner import compile_plan

    if is_plan_file(address):
        return saved_plan(address, samples, settings)
    job = load_job(address)
    graph = apply_settings(job.graph, settings)
    return compile_plan(graph, _count_data(job, graph) if samples is None else samples)


def saved_plan(address: str, samples: int | None, settings: Sequence[str] | None) -> Plan:
    """Return the plan in a file, which is as it is: other samples and settings are refused.

    Raises:
        BadParameter: likewise.
        PlanFileError: the file is damaged, or of another version.
    """
    from flowsched.plan import load_plan

    if settings:
        message = (
            f"{address} is a saved plan, made for its graph as it is. Change the graph and plan it again"
        )
        raise typer.BadParameter(message, param_hint="--set")
    plan = load_plan(address)
    if samples is not None and samples != plan.samples:
        message = (
            f"{samples} samples are asked for, and {address} is a saved plan for {plan.samples}. "
            "Leave --samples out, or plan the graph again"
        )
        raise typer.BadParameter(message, param_hint="--samples")
    return plan


def _count_data(job: Job, graph: Graph) -> int:
    """Return how many samples the data beside a graph has, which is read for this alone."""
    from flowsched.errors import FlowschedError
    from flowsched.runtime.inputs import count_inputs

    try:
        data = job.data
        if data is not None:
            return count_inputs(graph, data)
    except FlowschedError as error:
        error.add_note("It is read to count the samples: with --samples it is not")
        raise
    message = f"{job.address} holds no data that says how many. Give a number, e.g. --samples 16"
    raise typer.BadParameter(message, param_hint="--samples")
