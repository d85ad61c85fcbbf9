"""``--option ranks=4``: what a backend's constructor is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

import typer

Options: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        "-o",
        metavar="NAME=VALUE",
        help="An option of the backend, e.g. num_gpus.policy=0.5 or devices='{policy: [cuda:0]}' (YAML); "
        "several times.",
    ),
]
Address: TypeAlias = Annotated[
    str | None,
    typer.Option(help="The cluster to join, for a backend that joins one; short for --option address=..."),
]
Ranks: TypeAlias = Annotated[
    int | None,
    typer.Option(min=1, help="Processes to start, for a backend of ranks; short for --option ranks=..."),
]


def parse_options(
    texts: Sequence[str] | None, address: str | None = None, ranks: int | None = None
) -> dict[str, Any]:
    """Return the options of a backend by name.

    Args:
        texts: each ``NAME=VALUE`` or ``NAME.KEY=VALUE``; values are read as YAML, so that ``4`` is a number.
        address: the option ``address``.
        ranks: the option ``ranks``.

    Raises:
        BadParameter: an option is not written like this, or is given twice.

    >>> parse_options(["num_gpus.policy=0.5", "num_gpus.reward=1", "compiled=true"], ranks=4)
    {'ranks': 4, 'num_gpus': {'policy': 0.5, 'reward': 1}, 'compiled': True}
    """
    found: dict[str, Any] = {}
    if address is not None:
        found["address"] = address
    if ranks is not None:
        found["ranks"] = ranks
    for text in texts or ():
        name, equals, value = text.partition("=")
        path = name.strip().split(".", 1)
        if not equals or not all(path):
            raise _bad(f"{text!r} is not NAME=VALUE, e.g. ranks=4 or num_gpus.policy=0.5")
        *outer, last = path
        place = found.setdefault(outer[0], {}) if outer else found
        if not isinstance(place, dict) or last in place:
            raise _bad(f"{text!r} gives {name.strip()!r} a second time")
        place[last] = _read(value, text)
    return found


def _read(value: str, text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise _bad(f"the value of {text!r} is no YAML: {str(error).splitlines()[0]}") from error


def _bad(message: str) -> typer.BadParameter:
    return typer.BadParameter(message, param_hint="--option")
