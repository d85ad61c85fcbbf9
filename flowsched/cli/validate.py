"""``flowsched validate``: whether a graph, or a saved plan, is right."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flowsched.cli.options import AsJson, Settings
from flowsched.cli.output import print_json


def validate_command(
    graph: Annotated[
        str,
        typer.Argument(
            metavar="GRAPH|PLAN", help="A graph, or a saved plan (.json, .npz).", show_default=False
        ),
    ],
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
    from flowsched.cli.settings import apply_settings
    from flowsched.plan.files import load_plan
    from flowsched.planner import compile_plan

    is_plan = _is_plan_file(graph)
    if is_plan and (samples is not None or settings):
        raise typer.BadParameter("a saved plan is checked as it is, without --samples and --set")
    plan = None
    if is_plan:
        plan = load_plan(graph)
    else:
        declared = apply_settings(load_job(graph).graph, settings)
        plan = None if samples is None else compile_plan(declared, samples)
    if plan is not None:
        check_plan(plan)
        declared = plan.graph
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
    print(f"graph {declared.name!r} is sound: {len(declared)} nodes, {replicas} replicas")
    if plan is not None:
        print(
            f"its plan for {plan.samples} samples keeps all promises: {plan.table.calls} calls, hash {plan.hash}"
        )


def _is_plan_file(address: str) -> bool:
    """Whether an address is a saved plan; a graph file and a plan may both end in .json."""
    if address.endswith(".npz"):
        return True
    if not address.endswith(".json"):
        return False
    import json

    from flowsched.plan.plan import FORMAT_NAME

    try:
        data = json.loads(Path(address).read_bytes())
    except (OSError, ValueError, RecursionError):
        return False  # whoever reads it as a graph says what is wrong with it
    return isinstance(data, dict) and data.get("format") == FORMAT_NAME
