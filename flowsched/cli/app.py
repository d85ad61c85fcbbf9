"""The commands of ``flowsched``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from flowsched.cli.backends import backends_command
from flowsched.cli.calibrate import calibrate_command
from flowsched.cli.command import Command
from flowsched.cli.doctor import doctor_command
from flowsched.cli.exit_codes import EPILOG
from flowsched.cli.explain import explain_command
from flowsched.cli.plan import plan_command
from flowsched.cli.run import run_command
from flowsched.cli.schema import schema_command
from flowsched.cli.shard import shard_command
from flowsched.cli.validate import validate_command

COMMANDS: dict[str, Callable[..., None]] = {
    "plan": plan_command,
    "explain": explain_command,
    "validate": validate_command,
    "run": run_command,
    "shard": shard_command,
    "backends": backends_command,
    "doctor": doctor_command,
    "calibrate": calibrate_command,
    "schema": schema_command,
}


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(version("flowsched"))
        raise typer.Exit


def _about(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Route batches through a graph of replicated models: declare it, read the plan, run it anywhere."""


def make_app() -> typer.Typer:
    """Return the application with all its commands."""
    app = typer.Typer(
        name="flowsched",
        callback=_about,
        epilog=EPILOG,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    for name, command in COMMANDS.items():
        app.command(name, cls=Command, epilog=EPILOG)(command)
    return app
