"""``flowsched shard``: who gets which samples, and whether a loader that exists gives each sample once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flowsched.cli.lengths import read_lengths
from flowsched.cli.options import AsJson
from flowsched.cli.output import print_json, print_text

_OF_DEALS = ("batch_size", "mode", "group", "shuffle", "seed", "epoch", "tail", "lengths", "rank")


def shard_command(
    ctx: typer.Context,
    samples: Annotated[
        int | None,
        typer.Option("--samples", "-n", min=0, help="How many samples there are.", show_default=False),
    ] = None,
    ranks: Annotated[
        int | None,
        typer.Option(min=1, help="How many processes there are; --check starts so many.", show_default=False),
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="The most samples in one batch of one rank.", show_default=False)
    ] = None,
    mode: Annotated[
        str, typer.Option(help="exact (evaluation), even (training with collectives) or local (own data).")
    ] = "exact",
    group: Annotated[int, typer.Option(min=1, help="Samples in a row that stay in one batch.")] = 1,
    shuffle: Annotated[bool, typer.Option("--shuffle", help="Each epoch has an order of its own.")] = False,
    seed: Annotated[int, typer.Option(help="Of those orders.")] = 0,
    epoch: Annotated[int, typer.Option(min=0, help="The epoch that is shown.")] = 0,
    tail: Annotated[
        str, typer.Option(help="What even does with samples that fill no batch: cut, pad or drop.")
    ] = "cut",
    lengths: Annotated[
        Path | None,
        typer.Option(help="Cost of each sample: .npy, .json, or one number a line.", show_default=False),
    ] = None,
    rank: Annotated[
        int | None, typer.Option(min=0, help="List the batches of this rank.", show_default=False)
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="List all ranks, batches and ids, however many.")
    ] = False,
    check: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:LOADER",
            help="Read this loader, or what this function returns, on all ranks, and say which samples are "
            "repeated or missing: under torchrun or accelerate launch, or with --ranks. file.py:name as well.",
            show_default=False,
        ),
    ] = None,
    even: Annotated[
        bool, typer.Option("--even", help="With --check: ranks must have the same number of batches.")
    ] = False,
    patience: Annotated[
        float, typer.Option(min=0, help="With --check: seconds to wait for ranks that still read.")
    ] = 600.0,
    as_json: AsJson = False,
) -> None:
    """Say which rank gets which samples; with --check, which ones a loader of yours repeats or misses.

    flowsched shard --samples 1021 --ranks 4 --batch-size 16

    torchrun --nproc-per-node 4 -m flowsched shard --check job.py:loader

    With --check the exit code is 5 where samples are repeated or missing. Rank 0 prints.

    With --json: the declaration, "steps", "shares" [{"rank", "samples", "batches", "padding"}], "padding",
    "dropped", and with --rank "batches" [{"step", "weight", "ids", "real"}]. With --check: "verdict",
    "exact", "by", "expected", "rows", "ranks" [{"rank", "rows", "batches", "sizes", "padding"}], "repeated"
    [{"id", "times", "ranks"}], "missing" [id], "unknown" [id], "even".
    """
    if check is not None:
        _refuse_options_of_deals(ctx)
        from flowsched.cli.shard_check import check_command

        check_command(
            check,
            samples=samples,
            ranks=ranks,
            even=even,
            patience=patience,
            everything=everything,
            as_json=as_json,
        )
        return
    from flowsched.inspect.sharding import deal_to_dict, render_deal, render_rank
    from flowsched.sharding import Deal, Sharding

    if samples is None or ranks is None or batch_size is None:
        lacking = {"--samples": samples, "--ranks": ranks, "--batch-size": batch_size}
        names = ", ".join(name for name, value in lacking.items() if value is None)
        raise typer.BadParameter("give it, or --check MODULE:LOADER", param_hint=names)
    if rank is not None and rank >= ranks:
        raise typer.BadParameter(f"there are ranks 0 to {ranks - 1}", param_hint="--rank")
    if even:
        raise typer.BadParameter("it goes with --check; give --mode even here", param_hint="--even")
    costs = None if lengths is None else read_lengths(lengths)
    deal = Deal(Sharding(samples, ranks, batch_size, mode, group, shuffle, seed, tail, costs), epoch)
    if as_json:
        print_json(deal_to_dict(deal, rank))
    elif rank is None:
        print_text(render_deal(deal, everything=everything))
    else:
        print_text(render_rank(deal, rank, everything=everything))


def _refuse_options_of_deals(ctx: typer.Context) -> None:
    """Refuse what says how samples are to be dealt: a loader that is checked deals them itself."""
    sources = {name: ctx.get_parameter_source(name) for name in _OF_DEALS}
    given = [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
    if given:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise typer.BadParameter("it goes without --check: the loader itself says it", param_hint=options)
