"""``flowsched calibrate``: what routing costs on a backend of this machine."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from flowsched.cli.backend_options import Address, Options, Ranks, parse_options
from flowsched.cli.options import AsJson
from flowsched.cli.output import print_aside, print_json, print_table, print_text


def calibrate_command(
    backend: Annotated[
        str, typer.Option(help="The backend to measure; see `flowsched backends`.")
    ] = "threads",
    repeats: Annotated[int, typer.Option(min=1, help="Steps of each shape that are timed.")] = 9,
    output: Annotated[
        Path | None,
        typer.Option(
            help="File to keep the costs in; by default $FLOWSCHED_COSTS, or a file among your settings.",
            show_default=False,
        ),
    ] = None,
    address: Address = None,
    ranks: Ranks = None,
    option: Options = None,
    as_json: AsJson = False,
) -> None:
    """Measure the cost of a call, of a fragment and of a megabyte on a backend of this machine, and keep it.

    Plans read the file: flowsched.costs.load_costs("ray"). Each backend and set of options has one record in it,
    which the newest measurement replaces. Measure on a machine that does nothing else.

    With --json: {"costs": {"backend", "step", "call", "fragment", "megabyte", "options", "machine", "versions",
    "measured"}, "timings": [{"name", "calls", "fragments", "megabytes", "seconds"}], "saved": path}.
    """
    from flowsched.backend import make_backend
    from flowsched.calibration import calibrate
    from flowsched.costs import save_costs
    from flowsched.costs.files import try_saving

    options = parse_options(option, address, ranks)
    make = partial(make_backend, backend, options)
    home = make().is_home()
    if home:
        try_saving(output)  # before what takes long
    costs, timings = calibrate(make, options, repeats=repeats, report=print_aside if home else None)
    if not home:
        return
    saved = save_costs(costs, output)
    if as_json:
        print_json({"costs": asdict(costs), "timings": [asdict(one) for one in timings], "saved": str(saved)})
        return
    rows = [
        ("a step of two calls", _say(costs.step)),
        ("each call more", _say(costs.call)),
        ("each fragment more", _say(costs.fragment)),
        ("each megabyte more", _say(costs.megabyte)),
    ]
    print_table([f"backend {backend}", "takes"], rows)
    print_text(f"median of {repeats}; saved to {saved}")


def _say(seconds: float) -> str:
    return f"{seconds * 1e3:.3f} ms" if seconds < 1 else f"{seconds:.3f} s"
