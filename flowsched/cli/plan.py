"""``flowsched plan``: which samples go to which replica."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from flowsched.cli.options import AsJson, GraphAddress, Samples, Settings
from flowsched.cli.output import print_json


class PlanFormat(StrEnum):
    """How a plan is printed."""

    text = "text"
    mermaid = "mermaid"
    dot = "dot"


def plan_command(
    graph: GraphAddress,
    samples: Samples,
    node: Annotated[
        str | None, typer.Option(help="Print the calls of this node only, in call notation.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Save the plan, as .json or .npz.", show_default=False)
    ] = None,
    form: Annotated[PlanFormat, typer.Option("--format", help="How it is printed.")] = PlanFormat.text,
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Compile a graph for a number of samples and print the plan. Models are not needed.

    With --json: {"graph", "samples", "hash", "nodes": [one object a node]}, and "calls" where --node is given.
    """
    from flowsched.address import load_job
    from flowsched.cli.settings import apply_settings
    from flowsched.planner import compile_plan

    plan = compile_plan(apply_settings(load_job(graph).graph, settings), samples)
    if output is not None:
        plan.save(output)
    chosen = None if node is None else plan[node]
    if as_json:
        summaries = [row.to_dict() for row in plan.summary() if node in (None, row.node)]
        found = {"graph": plan.graph.to_dict(), "samples": samples, "hash": plan.hash, "nodes": summaries}
        print_json(found if chosen is None else {**found, "calls": [str(call) for call in chosen]})
    elif form is PlanFormat.mermaid:
        print(plan.to_mermaid())
    elif form is PlanFormat.dot:
        print(plan.to_dot())
    else:
        print(plan if chosen is None else chosen)
