"""``flowsched shard --check``: an existing loader, read on all ranks."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, redirect_stdout, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import typer

from flowsched.cli import exit_codes
from flowsched.cli.output import flush_stdout, print_json, print_text
from flowsched.errors import FlowschedError

if TYPE_CHECKING:
    from flowsched.data.board import Board
    from flowsched.data.check_loader import Checked, LoaderError

_MEND = "Start processes with torchrun, which sets it, or without a launcher and with --ranks 4"
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
        LaunchError: what the environment says of the launch is wrong.
        Exit: something is wrong.
    """
    launched = _count_launched(os.environ)
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


class LaunchError(FlowschedError):
    """An environment that does not say which of how many processes this one is, or how it reaches the others."""

    code = "launch"


def _count_launched(environment: Mapping[str, str]) -> int:
    """Return how many processes a launcher has started; 1 without one."""
    said = {name: environment[name] for name in ("RANK", "WORLD_SIZE") if name in environment}
    try:
        ranks = int(said.get("WORLD_SIZE", "1"))
        rank = int(said.get("RANK", "0" if ranks == 1 else ""))
    except ValueError:
        rank, ranks = 0, 0
    if not 0 <= rank < ranks:
        what = ", ".join(f"{name}={value!r}" for name, value in said.items())
        raise LaunchError(f"the environment says {what}, which is no rank below its WORLD_SIZE. {_MEND}")
    return ranks


def _start_group(**options: Any) -> None:
    """Make a process group of all processes of this launch.

    Raises:
        LaunchError: nothing says where the others are.
    """
    import torch.distributed as dist

    lacking = [
        name for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT") if not os.environ.get(name)
    ]
    if lacking:
        said = f"{' and '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} not set"
        raise LaunchError(f"{said}, so that ranks cannot find each other. {_MEND}")
    dist.init_process_group("gloo", **options)


def _check_and_say(
    address: str, samples: int | None, *, even: bool, patience: float, everything: bool, as_json: bool
) -> int:
    """Check the loader, say on one rank what was found, and return the exit code, the same on all."""
    from flowsched.address import importable
    from flowsched.data.board import open_board
    from flowsched.data.check_loader import LoaderError, check_on

    checked: Checked | LoaderError
    with importable(address), _stdout_kept_clear() if as_json else nullcontext():
        board = open_board()
        loaded: list[Any] = []
        if board is None:  # there is nothing yet to tell others by
            loaded.append(_load(address))
            board = _open_after_loading()
        try:
            checked = check_on(
                board,
                lambda: loaded[0] if loaded else _load(address),
                samples,
                patience=patience,
                join=lambda: _join(patience),
            )
        except LoaderError as error:
            checked = error
    if isinstance(checked, LoaderError):
        code, speaker, patience = exit_codes.exit_code_of(checked), checked.speaker, _SHORT
        if board.rank == speaker:
            _print_error(checked, as_json)
    else:
        wrong = bool(checked.endless) or not checked.findings.exact
        code = exit_codes.NOT_EXACT if wrong or (even and not checked.findings.even) else exit_codes.OK
        speaker = 0
        if board.rank == speaker:
            _print(checked, everything, as_json)
    flush_stdout()
    board.part(speaker, patience)
    return code


@contextmanager
def _stdout_kept_clear() -> Iterator[None]:
    """Let what a loader prints go to stderr, that of its workers and of C as well."""
    with ExitStack() as stack:
        with suppress(OSError):  # there is no stdout or stderr
            sys.stdout.flush()
            kept = os.dup(1)
            stack.callback(os.close, kept)
            os.dup2(2, 1)
            stack.callback(os.dup2, kept, 1)
        stack.enter_context(redirect_stdout(sys.stderr))
        yield


def _load(address: str) -> Any:
    """Return the loader at an address, or what the function there returns."""
    import torch.distributed as dist

    try:
        return _make(address)
    except Exception as error:
        if dist.is_initialized() or not _wants_process_group(error):
            raise
    _start_group()
    return _make(address)


def _make(address: str) -> Any:
    from torch.utils.data import DataLoader

    from flowsched.address import load_object
    from flowsched.data.stand_ins import is_loader
    from flowsched.errors import AddressError

    found = load_object(address, "loader")
    if callable(found) and not is_loader(found):
        _refuse_arguments(address, found)
        found = found()
    inner = list(found.values()) if isinstance(found, dict) else found
    if isinstance(inner, list | tuple) and inner and all(isinstance(one, DataLoader) for one in inner):
        raise AddressError(
            f"{address} is a {type(found).__name__} of {len(inner)} loaders. Give one loader, or a function "
            "without arguments that returns one; check each by itself"
        )
    if not is_loader(found):
        raise AddressError(
            f"{address} is a {type(found).__name__}, which gives no batches. Give a loader, or a function without "
            "arguments that returns one"
        )
    return found


def _refuse_arguments(address: str, function: Callable[..., Any]) -> None:
    from flowsched.errors import AddressError

    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some of C have none
        return
    starred = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [one.name for one in parameters if one.default is one.empty and one.kind not in starred]
    if needed:
        raise AddressError(
            f"{address} needs arguments: {', '.join(needed)}. Give a function without arguments that "
            "returns a loader"
        )


def _join(patience: float) -> None:
    """Make the process group that a loader may ask which rank this is, once it is read."""
    import torch.distributed as dist

    if dist.is_available() and not dist.is_initialized():
        _start_group(timeout=timedelta(seconds=max(patience, _LEAST)))


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
        _start_group()
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
