"""``flowsched doctor``: what this machine has, what is missing, and the commands that mend it."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from flowsched.cli import exit_codes
from flowsched.cli.extras import install_command, installed_version, missing_packages, packages_of_extras
from flowsched.cli.options import AsJson
from flowsched.cli.output import print_json, print_table, print_text

_JOBS = {"demo": "graphs/rollout_ngram.py", "torch": "graphs/chatlearn_209.py"}
"""Jobs that need an extra; backends need the one of their name."""


@dataclass(frozen=True)
class BackendHealth:
    """What became of trying a backend.

    Attributes:
        name: the name that users write.
        problem: why it does not work here and what mends it; None if it works.
        facts: what it has found on this machine.
    """

    name: str
    problem: str | None
    facts: dict[str, Any]


def doctor_command(
    backends: Annotated[
        list[str] | None,
        typer.Argument(metavar="[BACKEND]...", help="The backends that must work.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what this machine has and lacks, and what mends it.

    The exit code is 4 where a named backend does not work; without names, where none works.

    With --json: {"python", "system", "cores", "packages": {name: version or null}, "extras": {name: [missing]},
    "backends": [{"name", "problem", "facts"}]}.
    """
    from flowsched.backend import find_backends

    names = backends or [entry.name for entry in find_backends()]
    health = [_try(name) for name in names]
    packages = [name for needed in packages_of_extras().values() for name in needed]
    missing = missing_packages()
    found = {
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": _cores(),
        "packages": {name: installed_version(name) for name in ["flowsched", *dict.fromkeys(packages)]},
        "extras": missing,
        "backends": [asdict(one) for one in health],
    }
    if as_json:
        print_json(found)
    else:
        _print_report(found, health, missing)
    failed = [one for one in health if one.problem is not None]
    if len(failed) == len(health) or (backends and failed):
        raise typer.Exit(exit_codes.NO_BACKEND)


def _try(name: str) -> BackendHealth:
    """Import a backend and ask it how it is."""
    from flowsched.backend import load_backend
    from flowsched.errors import BackendError

    try:
        kind = load_backend(name)
        return BackendHealth(name, kind.problem(), dict(kind.describe()))
    except BackendError as error:
        return BackendHealth(name, str(error), {})
    except Exception as error:  # noqa: BLE001 (a package can be broken in any way, and this command says so)
        return BackendHealth(name, f"it breaks with {type(error).__name__}: {error}", {})


def _cores() -> int:
    """Return the cores that this process may use, which may be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _print_report(
    found: dict[str, Any], health: Sequence[BackendHealth], missing: dict[str, list[str]]
) -> None:
    rows: list[tuple[str, str]] = [
        ("python", found["python"]),
        ("system", found["system"]),
        ("cores", str(found["cores"])),
    ]
    rows += [(name, said or "not installed") for name, said in found["packages"].items()]
    for one in health:
        rows.append((f"backend {one.name}", one.problem or "works"))
        rows += [(f"  {key}", str(value)) for key, value in one.facts.items()]
    for extra, names in missing.items():
        rows.append((f"extra {extra}", f"not installed: {', '.join(names)}" if names else "installed"))
    print_table(["", "found"], rows)
    for extra, user in _users_of(missing).items():
        print_text(f"{user} the extra {extra}: {install_command(extra)}")


def _users_of(missing: dict[str, list[str]]) -> dict[str, str]:
    """Return what needs each extra that is not installed; an extra that nothing needs is left out."""
    from flowsched.backend import find_backends

    users: dict[str, list[str]] = {entry.name: [f"backend {entry.name}"] for entry in find_backends()}
    for extra, job in _JOBS.items():
        users.setdefault(extra, []).append(job)
    lacking = [extra for extra, names in missing.items() if names and extra in users]
    return {extra: f"{' and '.join(users[extra])} need{'s' * (len(users[extra]) == 1)}" for extra in lacking}
