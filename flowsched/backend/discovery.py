"""How backends are found by name, without importing any that is not asked for."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from flowsched.backend.interface import Backend
from flowsched.errors import BackendError, say_known

GROUP = "flowsched.backends"
_SESSIONS = (
    "backend",
    "seed",
    "max_in_flight",
    "observer",
)  # what every session takes beside a backend's options


@dataclass(frozen=True)
class BackendEntry:
    """A backend that an installed distribution announces; it is not imported.

    Attributes:
        name: the name that users write.
        target: ``package:Class`` of the backend.
        distribution: name of the distribution that brings it.
        version: version of that distribution.
    """

    name: str
    target: str
    distribution: str
    version: str


def find_backends() -> tuple[BackendEntry, ...]:
    """Return all backends that are installed, by name."""
    found = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    return tuple(
        BackendEntry(
            entry.name,
            entry.value,
            entry.dist.name if entry.dist else "unknown",
            entry.dist.version if entry.dist else "unknown",
        )
        for entry in found
    )


def load_backend(name: str) -> type[Backend]:
    """Import the backend called ``name``.

    Raises:
        BackendError: there is none of this name, or it cannot be imported (what the import raised is the cause).
    """
    found: dict[str, EntryPoint] = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in found:
        raise BackendError(f"there is no backend {name!r}. {say_known(str(name), sorted(found), 'backends')}")
    try:
        loaded = found[name].load()
    except Exception as error:  # a library that it needs may fail in any way, e.g. OSError for a missing .so
        raise BackendError(
            f"backend {name!r} ({found[name].value}) cannot be loaded: {error or type(error).__name__}. "
            f"Install what it needs: {_install_command(found[name])}"
        ) from error
    if not (inspect.isclass(loaded) and issubclass(loaded, Backend)):
        raise BackendError(
            f"backend {name!r} ({found[name].value}) is no subclass of flowsched.backend.Backend"
        )
    return loaded


def make_backend(backend: str | Backend, options: Mapping[str, Any]) -> Backend:
    """Return the backend ``backend`` with these options; one that is already made takes none.

    Raises:
        BackendError: it is unknown, cannot be loaded or does not take an option.
    """
    if isinstance(backend, Backend):
        if options:
            raise BackendError(
                f"options {', '.join(options)} were given beside a backend that is already made. "
                f"Give them to {type(backend).__name__}(...)"
            )
        return backend
    given: object = backend
    if not isinstance(given, str):
        raise BackendError(
            f"backend is {given!r} ({type(given).__name__}). Give the name of a backend or an instance of one"
        )
    kind = load_backend(backend)
    known = list(inspect.signature(kind).parameters)
    for name in options:
        if name not in known:
            raise BackendError(
                f"backend {backend!r} has no option {name!r}. {say_known(name, [*known, *_SESSIONS], 'options')}"
            )
    return kind(**options)


def _install_command(entry: EntryPoint) -> str:
    distribution = entry.dist.name if entry.dist else "flowsched"
    return (
        f'pip install "{distribution}[{entry.name}]"'
        if distribution == "flowsched"
        else f"pip install --upgrade {distribution}"
    )
