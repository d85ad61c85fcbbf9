"""``flowsched explain``: why a plan is as it is."""

from __future__ import annotations

from typing import Annotated

import typer

from flowsched.cli.options import AsJson, GraphAddress, Samples, Settings
from flowsched.cli.output import print_json, print_text


def explain_command(
    graph: GraphAddress,
    samples: Samples = None,
    node: Annotated[
        str | None, typer.Option(help="How the rows of this node are split over its replicas, and why.")
    ] = None,
    edge: Annotated[
        str | None, typer.Option(help="Who feeds whom: 'policy->reward' (quote it, the shell knows >).")
    ] = None,
    sample: Annotated[int | None, typer.Option(help="Where this sample goes, by its id.")] = None,
    replica: Annotated[str | None, typer.Option(help="What this replica does: policy.1.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="List all calls and fragments, however many.")
    ] = False,
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Say how a graph's samples are divided, and why. Models are not needed.

    With --json: an object whose "kind" says which question it answers.
    """
    from flowsched.cli.hints import COMMAND_HINTS
    from flowsched.cli.planning import find_plan
    from flowsched.inspect.explain import explain

    explanation = explain(
        find_plan(graph, samples, settings),
        node=node,
        edge=edge,
        sample=sample,
        replica=replica,
        limit=None if everything else 12,
        hints=COMMAND_HINTS,
    )
    if as_json:
        print_json(explanation.to_dict())
    else:
        print_text(explanation)
