"""What a launcher such as torchrun tells each process that it starts, by variables of the environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from flowsched.errors import BackendError

NAMES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_MOST_PORTS = 65_535


@dataclass(frozen=True)
class Launch:
    """One process of those that a launcher has started.

    Attributes:
        rank: of this process.
        size: how many processes there are.
        place: where they meet, ``host:port``.
    """

    rank: int
    size: int
    place: str


def is_launched() -> bool:
    """Return whether a launcher has started this process.

    Raises:
        BackendError: some of its variables are set and others are not, so that it cannot be told.
    """
    there = _set_in(os.environ)
    if len(there) == len(NAMES):
        return True
    if len(there) < 2 or not {"RANK", "WORLD_SIZE"} & set(there):  # as other programs set them
        return False
    raise BackendError(
        f"{_list(there)} are set, as by a launcher, and {_say_missing(there)}. {_how_to_start()}, or give "
        "start='local' to have ranks started here"
    )


def read_launch() -> Launch:
    """Return what the launcher of this process says.

    Raises:
        BackendError: a variable is missing or wrong; it names that and the command that sets it.
    """
    there = _set_in(os.environ)
    if not there:
        raise BackendError(
            "start='torchrun' is for programs that a launcher starts, and none of RANK, WORLD_SIZE, MASTER_ADDR "
            f"and MASTER_PORT is set. {_how_to_start()}, or leave start= out to have ranks started here"
        )
    if len(there) < len(NAMES):
        raise BackendError(f"start='torchrun', and {_say_missing(there)}. {_how_to_start()}")
    rank, size = read_number("RANK", 0), read_number("WORLD_SIZE", 1)
    port = read_number("MASTER_PORT", 0, _MOST_PORTS)
    if rank >= size:
        raise BackendError(
            f"RANK is {rank}, and WORLD_SIZE {size}: ranks are numbered from 0 to {size - 1}. {_how_to_start()}"
        )
    return Launch(rank, size, f"{os.environ['MASTER_ADDR']}:{port}")


def read_number(name: str, least: int, most: int | None = None) -> int:
    """Return the whole number in a variable that is set.

    Raises:
        BackendError: it holds something else.
    """
    text = os.environ[name]
    value = int(text) if text.strip().isascii() and text.strip().isdigit() else -1
    if value < least or (most is not None and value > most):
        limit = "or more" if most is None else f"to {most}"
        raise BackendError(
            f"the variable {name} is {text!r}, which is no whole number of {least} {limit}. {_how_to_start()}, "
            "which sets it"
        )
    return value


def _set_in(variables: Mapping[str, str]) -> list[str]:
    return [name for name in NAMES if variables.get(name)]


def _say_missing(there: list[str]) -> str:
    missing = [name for name in NAMES if name not in there]
    return f"{_list(missing)} {'is' if len(missing) == 1 else 'are'} not"


def _list(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _how_to_start() -> str:
    name = Path(sys.argv[0]).name
    program = name if name.endswith(".py") and not name.startswith("__") else "train.py"
    return f"Start the program on every rank by: torchrun --nproc-per-node 4 {program}"
