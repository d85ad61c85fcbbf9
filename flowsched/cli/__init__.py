"""The command line: ``flowsched``, or ``python -m flowsched``; one file a command."""

from __future__ import annotations


def main() -> None:
    """Run the command line of this process and exit."""
    import sys

    _open_missing_streams()
    try:
        from flowsched.cli.app import make_app

        make_app()()
    except KeyboardInterrupt:  # while commands were still being loaded
        sys.exit(130)


def _open_missing_streams() -> None:
    """Let streams that whoever started us has closed go nowhere, so that no file gets their number instead."""
    import os
    import sys
    from pathlib import Path

    number = os.open(os.devnull, os.O_RDWR)
    while number <= 2:
        number = os.open(os.devnull, os.O_RDWR)
    os.close(number)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 (until we exit)
