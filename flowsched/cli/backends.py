"""``flowsched backends``: which backends are installed, and what they lack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from flowsched.cli.extras import install_command, missing_packages
from flowsched.cli.options import AsJson
from flowsched.cli.output import print_json, print_table


def backends_command(as_json: AsJson = False) -> None:
    """List the backends that are installed and what they lack. None is imported; `doctor` tries them.

    With --json: {"backends": [{"name", "target", "distribution", "version", "missing": [package],
    "install": command or null}]}.
    """
    from flowsched.backend import find_backends

    lacking = missing_packages()
    found = []
    for entry in find_backends():
        missing = lacking.get(entry.name, []) if entry.distribution == "flowsched" else []
        command = install_command(entry.name) if missing else None
        found.append({**asdict(entry), "missing": missing, "install": command})
    if as_json:
        print_json({"backends": found})
        return
    print_table(["backend", "class", "from", "state"], [_row(entry) for entry in found])


def _row(entry: Mapping[str, Any]) -> tuple[str, str, str, str]:
    missing = ", ".join(entry["missing"])
    state = f"lacks {missing}: {entry['install']}" if missing else "installed"
    return entry["name"], entry["target"], f"{entry['distribution']} {entry['version']}", state
