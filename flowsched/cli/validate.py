"""``flowsched validate``: whether a graph, or a saved plan, is right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from flowsched.cli.options import AsJson, GraphAddress, Settings
from flowsched.cli.output import print_json, print_text

if TYPE_CHECKING:
    from flowsched.plan import Plan


def validate_command(
    graph: GraphAddress,
    samples: Annotated[
        int | None, typer.Option("--samples", "-n", min=0, help="Also plan for so many samples.")
    ] = None,
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Check a graph, or every promise of a plan. Models are not needed.

    With --json: {"valid": true, "kind": "graph" or "plan", "graph", "samples", "hash"}.
    """
    from flowsched.address import load_job
    from flowsched.check import check_plan
    from flowsched.cli.planning import saved_plan
    from flowsched.cli.settings import apply_settings
    from flowsched.plan.files import is_plan_file
    from flowsched.planner import compile_plan

    is_plan = is_plan_file(graph)
    plan: Plan | None = None
    if is_plan:
        plan = saved_plan(graph, samples, settings)
        declared = plan.graph
    else:
        declared = apply_settings(load_job(graph).graph, settings)
        plan = None if samples is None else compile_plan(declared, samples)
    if plan is not None:
        check_plan(plan)
    found = {
        "valid": True,
        "kind": "plan" if is_plan else "graph",
        "graph": declared.name,
        "samples": plan.samples if plan else None,
        "hash": plan.hash if plan else None,
    }
    if as_json:
        print_json(found)
        return
    replicas = sum(owner.replicas for owner in declared.owners())
    print_text(f"graph {declared.name!r} is sound: {len(declared):,} nodes, {replicas:,} replicas")
    if plan is not None:
        print_text(
            f"its plan for {plan.samples:,} samples keeps all promises: "
            f"{plan.table.calls:,} calls, hash {plan.hash}"
        )
