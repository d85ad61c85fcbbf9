"""``flowsched shard --check``: an existing loader, read on all ranks."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import typer

from flowsched.cli import exit_codes
from flowsched.cli.output import flush_stdout, print_json, print_text

if TYPE_CHECKING:
    from flowsched.data.board import Board
    from flowsched.data.check_loader import Checked, LoaderError

_LEAST = 30.0  # seconds that a process group gets to be made
_SHORT = 5.0  # seconds to wait for a rank to say that another has failed


def check_command(
    address: str,
    *,
    samples: int | None,
    ranks: int | None,
    even: bool,
    patience: float,
    everything: bool,
    as_json: bool,
) -> None:
    """Read the loader at an address on all ranks; rank 0 says what was found, and all end with the same code.

    Raises:
        BadParameter: processes are asked for where a launcher has started some.
        Exit: something is wrong.
    """
    launched = int(os.environ.get("WORLD_SIZE", "1"))
    if ranks is not None and ranks > 1 and launched == 1:
        from flowsched.cli.ranks_here import run_ranks

        arguments = [
            "--patience",
            str(patience),
            *["--even"] * even,
            *["--json"] * as_json,
            *["--all"] * everything,
        ]
        if samples is not None:
            arguments += ["--samples", str(samples)]
        raise typer.Exit(run_ranks(ranks, ["shard", "--check", address, *arguments]))
    if ranks not in (None, launched):
        raise typer.BadParameter(f"the launcher has started {launched} processes", param_hint="--ranks")
    import torch.distributed as dist

    try:
        code = _check_and_say(
            address, samples, even=even, patience=patience, everything=everything, as_json=as_json
        )
    finally:
        if dist.is_available() and dist.is_initialized():
            dist.destroy_process_group()
    if code != exit_codes.OK:
        raise typer.Exit(code)


def _check_and_say(
    address: str, samples: int | None, *, even: bool, patience: float, everything: bool, as_json: bool
) -> int:
    """Check the loader, say on one rank what was found, and return the exit code, the same on all."""
    from flowsched.address import importable
    from flowsched.data.board import open_board
    from flowsched.data.check_loader import LoaderError, check_on

    with importable(address):
        board = open_board()
        loaded: list[Any] = []
        if board is None:  # there is nothing yet to tell others by
            loaded.append(_load(address))
            board = _open_after_loading()
        speaker, patient = 0, patience
        try:
            checked = check_on(
                board,
                lambda: loaded[0] if loaded else _load(address),
                samples,
                patience=patience,
                join=lambda: _join(patience),
            )
            wrong = bool(checked.endless) or not checked.findings.exact
            code = exit_codes.NOT_EXACT if wrong or (even and not checked.findings.even) else exit_codes.OK
            if board.rank == speaker:
                _print(checked, everything, as_json)
        except LoaderError as error:
            code, speaker, patient = exit_codes.exit_code_of(error), error.speaker, _SHORT
            if board.rank == speaker:
                _print_error(error, as_json)
    flush_stdout()
    board.part(speaker, patient)
    return code


def _load(address: str) -> Any:
    """Return the loader at an address, or what the function there returns."""
    import torch.distributed as dist

    try:
        return _make(address)
    except Exception as error:
        if dist.is_initialized() or not _wants_process_group(error):
            raise
    dist.init_process_group("gloo")
    return _make(address)


def _make(address: str) -> Any:
    from flowsched.address import load_object
    from flowsched.data.stand_ins import is_loader
    from flowsched.errors import AddressError

    found = load_object(address, "loader")
    if callable(found) and not is_loader(found):
        found = found()
    if not is_loader(found):
        raise AddressError(
            f"{address} is a {type(found).__name__}, which gives no batches. Give a loader, or a function without "
            "arguments that returns one"
        )
    return found


def _join(patience: float) -> None:
    """Make the process group that a loader may ask which rank this is, once it is read."""
    import torch.distributed as dist

    if dist.is_available() and not dist.is_initialized():
        dist.init_process_group("gloo", timeout=timedelta(seconds=max(patience, _LEAST)))


def _wants_process_group(error: BaseException | None) -> bool:
    """Return whether it failed since torch.distributed is not initialised yet."""
    while error is not None:
        if "process group has not been initialized" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _open_after_loading() -> Board:
    import torch.distributed as dist

    from flowsched.data.board import open_board
    from flowsched.data.check_loader import Failure, LoaderError

    if not dist.is_initialized():
        dist.init_process_group("gloo")
    board = open_board()
    if board is None:
        raise LoaderError(1, [Failure(0, "this process is one of several, and cannot reach the others")])
    return board


def _print(checked: Checked, everything: bool, as_json: bool) -> None:
    from flowsched.data.report import check_to_dict, render_check

    if as_json:
        print_json(check_to_dict(checked))
    else:
        print_text(render_check(checked, everything=everything))


def _print_error(error: LoaderError, as_json: bool) -> None:
    from flowsched.cli.errors import error_to_dict, print_error

    if as_json:
        print_json({"error": error_to_dict(error)})
    else:
        print_error(error)
