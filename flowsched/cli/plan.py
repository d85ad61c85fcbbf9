"""``flowsched plan``: which samples go to which replica."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from flowsched.cli.options import AsJson, GraphAddress, Samples, Settings
from flowsched.cli.output import print_aside, print_json, print_text
from flowsched.cli.programs import Home, ProgramOptions, Rank, Ranks, Rendezvous


class PlanFormat(StrEnum):
    """How a plan is printed."""

    text = "text"
    mermaid = "mermaid"
    dot = "dot"


def plan_command(
    graph: GraphAddress,
    samples: Samples = None,
    node: Annotated[
        str | None, typer.Option(help="Print the calls of this node only, in call notation.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Save the plan, as .json or .npz.", show_default=False)
    ] = None,
    form: Annotated[PlanFormat, typer.Option("--format", help="How it is printed.")] = PlanFormat.text,
    ranks: Ranks = None,
    home: Home = None,
    rank: Rank = None,
    rendezvous: Rendezvous = False,
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Compile a graph for a number of samples, or load a plan, and print it. Models are not needed.

    With --json: {"graph", "samples", "hash", "saved": path or null, "nodes": [one object a node]}, and "calls"
    where --node is given, "programs" where --ranks is: {"ranks", "home", "rendezvous", "replicas": {node: ranks},
    "messages": how many, "actions": {rank: [one line each]}}.
    """
    from flowsched.cli.hints import COMMAND_HINTS
    from flowsched.cli.planning import find_plan
    from flowsched.inspect.text import render_plan

    plan = find_plan(graph, samples, settings)
    chosen = None if node is None else plan[node]
    options = ProgramOptions(ranks, home, rank, rendezvous)
    programs = options.lower(plan)
    if output is not None:
        plan.save(output)
    if as_json:
        found = {
            "graph": plan.graph.to_dict(),
            "samples": plan.samples,
            "hash": plan.hash,
            "saved": None if output is None else str(output),
            "nodes": [row.to_dict() for row in plan.summary() if node in (None, row.node)],
        }
        if chosen is not None:
            found["calls"] = [str(call) for call in chosen]
        if programs is not None:
            found["programs"] = options.to_dict(programs)
        print_json(found)
        return
    if programs is not None:
        print_text(options.render(programs))
    elif form is PlanFormat.mermaid:
        print_text(plan.to_mermaid())
    elif form is PlanFormat.dot:
        print_text(plan.to_dot())
    elif chosen is not None:
        print_text(chosen)
    else:
        print_text(render_plan(plan, COMMAND_HINTS))
    if output is not None:
        size = f"{plan.samples:,} samples, {plan.table.calls:,} calls, hash {plan.hash[:12]}"
        print_aside(f"saved the plan ({size}) to {output}")
