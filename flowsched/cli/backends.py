"""``flowsched backends``: which backends are installed."""

from __future__ import annotations

from dataclasses import asdict

from flowsched.cli.options import AsJson
from flowsched.cli.output import print_json, print_table


def backends_command(as_json: AsJson = False) -> None:
    """List the backends that are installed. None is imported; `doctor` tries them.

    With --json: {"backends": [{"name", "target", "distribution", "version"}]}.
    """
    from flowsched.backend import find_backends

    found = find_backends()
    if as_json:
        print_json({"backends": [asdict(entry) for entry in found]})
        return
    rows = [(entry.name, entry.target, f"{entry.distribution} {entry.version}") for entry in found]
    print_table(["backend", "class", "from"], rows)
