"""The command line: ``flowsched``, or ``python -m flowsched``; one file a command."""

from __future__ import annotations


def main() -> None:
    """Run the command line of this process and exit."""
    import sys

    try:
        from flowsched.cli.app import make_app

        make_app()()
    except KeyboardInterrupt:  # while commands were still being loaded
        sys.exit(130)
