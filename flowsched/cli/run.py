"""``flowsched run``: one step of a job."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from flowsched.cli.backend_options import Address, Options, Ranks, parse_options
from flowsched.cli.options import AsJson, GraphAddress, Settings
from flowsched.cli.output import print_json, print_table, print_text


def run_command(
    graph: GraphAddress,
    backend: Annotated[
        str, typer.Option(help="What the replicas run on; see `flowsched backends`.")
    ] = "threads",
    samples: Annotated[
        int | None, typer.Option("--samples", "-n", min=0, help="Take only the first so many samples.")
    ] = None,
    models: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Models by node: file.py (its `models`), file.py:name or package.module:name.",
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Batches by source: a .json file (an object with a list or columns for each source), "
            "a .jsonl file (one row a line, for a single source), file.py (its `data`), file.py:name or "
            "package.module:name.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Save the outputs, as .jsonl, .json or .npz.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="What the seeds of all samples are drawn from.")] = 0,
    max_in_flight: Annotated[
        int | None, typer.Option(min=1, help="The most calls of a node whose outputs are kept at once.")
    ] = None,
    address: Address = None,
    ranks: Ranks = None,
    option: Options = None,
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Run one step of a job, or of a saved plan, with its models on its data.

    A job in Python holds `graph`, `models` and `data`; --models and --data take their place. Progress goes to
    stderr, a summary to stdout. What --output saves goes by its suffix:

    \b
      .jsonl  one line a row, {"output": "reward", "sample": 3, "row": 12, "value": {"score": 0.5}}:
              row 12 of the node reward, which belongs to sample 3 (both from 0)
      .json   one object of columns for each output, {"reward": {"score": [0.5, ...]}}
      .npz    one array a column, named reward/score, for numpy.load

    Under torchrun every rank runs this command: torchrun --nproc-per-node 4 -m flowsched run job.py
    --backend torch. Rank 0 shows, saves and prints; the others only work.

    The file appears whole or not at all. JSON has no NaN and no infinity: rows with one are refused, and .npz
    keeps them.

    With --json: {"graph", "backend", "samples", "calls", "replicas", "start_seconds": until the step began,
    "seconds": of the step, "outputs": {name: {"rows", "columns"}}, "saved": path or null}. On a backend that tells
    of no events there is no progress; "replicas" and "start_seconds" are null, and "seconds" is all of it.
    """
    from flowsched.address import Job, importable, load_job
    from flowsched.backend import Feature, make_backend
    from flowsched.check import check_plan
    from flowsched.cli.givens import find_inputs, find_models, refuse_other_samples
    from flowsched.cli.planning import saved_plan
    from flowsched.cli.progress import make_progress
    from flowsched.cli.results import save_results
    from flowsched.cli.settings import apply_settings
    from flowsched.cli.timing import Timing
    from flowsched.plan.files import is_plan_file
    from flowsched.planner import compile_plan
    from flowsched.session import run

    _check_output(output)
    saved = saved_plan(graph, samples, settings) if is_plan_file(graph) else None
    if saved is not None:
        check_plan(saved)  # it comes from outside
    job = load_job(graph) if saved is None else Job(saved.graph, graph)
    declared = apply_settings(job.graph, settings)
    # Before data is read, which may take long.
    made = make_backend(backend, parse_options(option, address, ranks))
    with job.importable(), importable(models):
        bound = find_models(job, models)
        inputs, count = find_inputs(job, declared, data, samples)
        if saved is not None:
            refuse_other_samples(saved, count, graph)
        plan = compile_plan(declared, count) if saved is None else saved
        with make_progress() if made.is_home() else nullcontext() as progress:
            timing = None if progress is None else Timing(progress)
            outputs = run(
                plan,
                bound,
                inputs,
                backend=made,
                seed=seed,
                max_in_flight=max_in_flight,
                observer=None if Feature.OBSERVER in made.lacks else timing,
            )
    if timing is None:
        return
    timing.end()
    if output is not None:
        save_results(outputs, plan, output)
    found = {
        "graph": declared.name,
        "backend": backend,
        "samples": count,
        "calls": plan.table.calls,
        "replicas": None if timing.start_seconds is None else timing.replicas,
        "start_seconds": None if timing.start_seconds is None else round(timing.start_seconds, 6),
        "seconds": round(timing.run_seconds, 6),
        "outputs": {name: _describe(batch) for name, batch in outputs.items()},
        "saved": None if output is None else str(output),
    }
    if as_json:
        print_json(found)
    else:
        _print_summary(found, timing)


def _check_output(output: Path | None) -> None:
    """Refuse a file that could not be written before the run, not after it."""
    from flowsched.cli.results import RESULT_SUFFIXES, try_saving

    if output is None:
        return
    if output.suffix not in RESULT_SUFFIXES:
        raise typer.BadParameter(f"{output} must end in {', '.join(RESULT_SUFFIXES)}", param_hint="--output")
    try_saving(output)


def _describe(batch: Any) -> dict[str, Any]:
    from flowsched.batch import count_rows

    columns = [str(key) for key in batch] if isinstance(batch, Mapping) else []
    return {"rows": count_rows(batch) or 0, "columns": columns}


def _print_summary(found: Mapping[str, Any], timing: object) -> None:
    rows = [(name, said["rows"], ", ".join(said["columns"])) for name, said in found["outputs"].items()]
    print_table(["output", "rows", "columns"], rows)
    print_text(f"{found['samples']:,} samples, {found['calls']:,} calls on {found['backend']}: {timing}")
    if found["saved"]:
        print_text(f"saved to {found['saved']}")
