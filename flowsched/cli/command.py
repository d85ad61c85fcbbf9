"""How every command ends: with output, with an error in the form that was asked for, or interrupted."""

from __future__ import annotations

import os
import sys
from typing import Any

import typer
from typer.core import TyperCommand

from flowsched.cli import exit_codes
from flowsched.cli.output import print_json


class Command(TyperCommand):
    """A command whose errors become sentences (or JSON, with ``--json``) and exit codes."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        """Run the command."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:  # whoever read the output has seen enough
            _forget_stdout()
            raise typer.Exit(exit_codes.OK) from None
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            raise typer.Exit(exit_codes.INTERRUPTED) from None
        except Exception as error:  # noqa: BLE001 (flowsched's own are not known before flowsched is imported)
            raise typer.Exit(_report(error, as_json=bool(ctx.params.get("as_json")))) from None
        return result


def _report(error: Exception, *, as_json: bool) -> int:
    """Print an error and return its exit code; what is no error of ours goes on."""
    from flowsched.cli.errors import error_to_dict, print_error
    from flowsched.errors import FlowschedError

    if not isinstance(error, FlowschedError):
        raise error
    if as_json:
        print_json({"error": error_to_dict(error)})
    else:
        print_error(error)
    return exit_codes.exit_code_of(error)


def _forget_stdout() -> None:
    """Let what is still buffered go nowhere, so that Python does not complain when it exits."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
