"""What each extra of the installed flowsched needs, and which of that is there."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, requires, version

_NOT_OFFERED = ("all", "test")


def packages_of_extras() -> dict[str, list[str]]:
    """Return the packages of each extra, as flowsched's own metadata lists them."""
    found: dict[str, list[str]] = {}
    for requirement in requires("flowsched") or []:
        extra = re.search(r"""extra == ['"]([\w-]+)['"]""", requirement)
        name = re.match(r"[\w.-]+", requirement)
        if extra and name and extra[1] not in _NOT_OFFERED and name[0] != "flowsched":
            found.setdefault(extra[1], []).append(name[0])
    return found


def missing_packages() -> dict[str, list[str]]:
    """Return the packages of each extra that are not installed."""
    return {
        extra: [name for name in needed if installed_version(name) is None]
        for extra, needed in packages_of_extras().items()
    }


def installed_version(package: str) -> str | None:
    """Return the version of an installed distribution, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def install_command(extra: str) -> str:
    """Return the command that installs an extra."""
    return f'pip install "flowsched[{extra}]"'
