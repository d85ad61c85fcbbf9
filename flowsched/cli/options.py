"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

GraphAddress = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH|PLAN",
        help="A graph: graph.yaml, graph.json, file.py (its `graph`), file.py:name or package.module:name. "
        "Or a saved plan: plan.json, plan.npz.",
        show_default=False,
    ),
]
Samples = Annotated[
    int | None,
    typer.Option(
        "--samples",
        "-n",
        min=0,
        help="Samples in a step; by default as many as the plan, or the `data` beside the graph, has.",
        show_default=False,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Change a field: nodes.reward.replicas=6, nodes.reward.batch_size=none. May be repeated.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, errors as well.")]
