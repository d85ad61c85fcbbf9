"""``flowsched schema``: the JSON Schema of graph files."""

from __future__ import annotations

from flowsched.cli.options import AsJson
from flowsched.cli.output import print_json


def schema_command(as_json: AsJson = False) -> None:  # noqa: ARG001 (a schema is JSON in any case)
    """Print the JSON Schema of graph files, for editors."""
    from flowsched.graph.schema import graph_schema

    print_json(graph_schema())
