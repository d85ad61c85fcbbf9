"""The file that holds measured costs: one record for each backend and set of options."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from flowsched.costs.data import BackendCosts
from flowsched.errors import FlowschedError
from flowsched.replacing import refuse_unwritable, replacing

FORMAT_VERSION = 1
VARIABLE = "FLOWSCHED_COSTS"
_ANEW = "Delete it and measure anew with `flowsched calibrate`"


class CostsFileError(FlowschedError):
    """A file of costs that cannot be read or written.

    Args:
        file: the file.
        reason: why.
        mend: how to put it right.
    """

    code = "costs-file"

    def __init__(self, file: Path, reason: str, mend: str = _ANEW) -> None:
        self.file = file
        self.reason = reason
        self.mend = mend
        super().__init__(f"costs file {str(file)!r}: {reason}. {mend}")

    def __reduce__(self) -> tuple[type[CostsFileError], tuple[Path, str, str]]:
        return type(self), (self.file, self.reason, self.mend)


def costs_file() -> Path:
    """Return where costs are kept: what ``FLOWSCHED_COSTS`` names, or a file among the user's own settings."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    from platformdirs import user_config_path

    return user_config_path("flowsched", appauthor=False) / "costs.json"


def load_costs(
    backend: str, options: Mapping[str, Any] | None = None, file: Path | None = None
) -> BackendCosts | None:
    """Return what was measured of a backend with these options; None if nothing was.

    Args:
        backend: name of the backend.
        options: the options that it was measured with; None for whatever was measured last.
        file: the file; by default :func:`costs_file`.

    Raises:
        CostsFileError: the file is damaged or of another format version.
    """
    for costs in reversed(_read(file or costs_file())):
        if costs.backend == backend and (options is None or dict(costs.options) == dict(options)):
            return costs
    return None


def save_costs(costs: BackendCosts, file: Path | None = None) -> Path:
    """Keep what was measured, in place of an older record of the same backend and options; return the file.

    Raises:
        CostsFileError: the file that is there is damaged or of another format version, or it cannot be written;
            what stood there is untouched.
    """
    file = file or costs_file()
    others = [
        old for old in _read(file) if (old.backend, dict(old.options)) != (costs.backend, dict(costs.options))
    ]
    data = {"version": FORMAT_VERSION, "costs": [asdict(one) for one in [*others, costs]]}
    with _told_as_ours(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as stream:
            stream.write(json.dumps(data, indent=2).encode() + b"\n")
    return file


def try_saving(file: Path | None = None) -> None:
    """Look whether costs could be kept in a file, before they are measured; at most its folder is made.

    Raises:
        CostsFileError: as :func:`save_costs`.
    """
    file = file or costs_file()
    _read(file)
    with _told_as_ours(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        refuse_unwritable(file)


@contextmanager
def _told_as_ours(file: Path) -> Iterator[None]:
    """Raise what the operating system says of a file as a CostsFileError."""
    try:
        yield
    except OSError as error:
        reason = f"it cannot be read or written: {(error.strerror or str(error)).lower()}"
        raise CostsFileError(file, reason, "Give the path of a file that you may write") from error


def _read(file: Path) -> list[BackendCosts]:
    with _told_as_ours(file):
        if not file.exists():
            return []
        text = file.read_bytes()
    try:
        data = json.loads(text)
        version, records = data["version"], data["costs"]
    except (ValueError, TypeError, KeyError) as error:
        raise CostsFileError(file, f"it holds no costs ({type(error).__name__}: {error})") from error
    if version != FORMAT_VERSION:
        raise CostsFileError(
            file, f"it is of format version {version!r}, and this flowsched reads {FORMAT_VERSION}"
        )
    try:
        return TypeAdapter(list[BackendCosts]).validate_python(records)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise CostsFileError(file, f"costs.{place}: {first['msg']}") from error
