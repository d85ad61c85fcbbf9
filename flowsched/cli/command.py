"""How every command ends: with output, with an error in the form that was asked for, or interrupted."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import typer
from typer.core import TyperCommand

from flowsched.cli import exit_codes
from flowsched.cli.output import StdoutLostError, flush_stdout, print_aside, print_json

_JSON = "--json"
_UsageError: Any = typer.BadParameter.__mro__[
    1
]  # for all command lines that are wrong; typer has no name for it


class Command(TyperCommand):
    """A command whose errors become sentences (or JSON, with ``--json``) and exit codes."""

    def make_context(self, info_name: str | None, args: list[str], *others: Any, **extra: Any) -> Any:
        """Read the command line."""
        as_json = _JSON in args
        try:
            return super().make_context(info_name, args, *others, **extra)
        except _UsageError as error:
            if as_json:
                raise typer.Exit(_end(error, as_json=True)) from None
            raise

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        """Run the command."""
        try:
            result = super().invoke(ctx)
            flush_stdout()
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 (ours are not known before flowsched is)
            raise typer.Exit(_end(error, as_json=bool(ctx.params.get("as_json")))) from None
        return result


def _end(error: BaseException, *, as_json: bool) -> int:
    """Say how a command ended and return its exit code; what is no error of ours goes on."""
    if isinstance(error, KeyboardInterrupt):
        print_aside("interrupted")
        return exit_codes.INTERRUPTED
    if isinstance(error, StdoutLostError):
        return _end_unread(error)
    if as_json and isinstance(error, _UsageError):
        return _end_with(
            {"code": "usage", "message": error.format_message(), "problems": []}, exit_codes.USAGE
        )
    from flowsched.cli.errors import error_to_dict, print_error
    from flowsched.errors import FlowschedError

    if not isinstance(error, FlowschedError):
        raise error
    code = exit_codes.exit_code_of(error)
    if as_json:
        return _end_with(error_to_dict(error), code)
    print_error(error)
    return code


def _end_with(error: dict[str, Any], code: int) -> int:
    with suppress(StdoutLostError):  # the exit code still says it
        print_json({"error": error})
        flush_stdout()
    return code


def _end_unread(error: StdoutLostError) -> int:
    """Return the exit code of a command that had done its work, and could not say so."""
    if isinstance(error.__cause__, BrokenPipeError):  # whoever read the output has seen enough
        return exit_codes.OK
    print_aside(f"error: stdout cannot be written: {error.__cause__}")
    return exit_codes.REFUSED
