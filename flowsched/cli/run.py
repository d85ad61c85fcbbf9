"""``flowsched run``: one step of a job."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flowsched.cli.options import AsJson, GraphAddress, Settings
from flowsched.cli.output import print_json, print_table

if TYPE_CHECKING:
    from flowsched.address import Job
    from flowsched.graph import Graph
    from flowsched.plan import Plan


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
        typer.Option(metavar="ADDRESS", help="Models by node: file.py:name or package.module:name."),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Batches by source: a .json file (an object with a list or columns for each source), "
            "a .jsonl file (one row a line, for a single source), file.py:name or package.module:name.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Save the outputs, as .jsonl, .json or .npz.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="What the seeds of all samples are drawn from.")] = 0,
    max_in_flight: Annotated[
        int | None, typer.Option(min=1, help="The most calls of a node whose outputs are kept at once.")
    ] = None,
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Run one step of a job, with its models on its data.

    A job in Python holds `graph`, `models` and `data`; --models and --data take their place. Progress goes to
    stderr, a summary to stdout.

    With --json: {"graph", "backend", "samples", "calls", "seconds", "outputs": {name: {"rows", "columns"}},
    "saved": path or null}.
    """
    from flowsched.address import importable, load_job
    from flowsched.backend import load_backend
    from flowsched.cli.progress import make_progress
    from flowsched.cli.settings import apply_settings
    from flowsched.planner import compile_plan
    from flowsched.session import run

    _check_output(output)
    job = load_job(graph)
    declared = apply_settings(job.graph, settings)
    load_backend(backend)  # before data is read, which may take long
    with job.importable(), importable(models):
        bound = _find_models(job, models)
        inputs, count = _find_inputs(job, declared, data, samples)
        plan = compile_plan(declared, count)
        began = time.perf_counter()
        with make_progress() as progress:
            outputs = run(
                plan,
                bound,
                inputs,
                backend=backend,
                seed=seed,
                max_in_flight=max_in_flight,
                observer=progress,
            )
    seconds = time.perf_counter() - began
    _save(outputs, plan, output)
    found = {
        "graph": declared.name,
        "backend": backend,
        "samples": count,
        "calls": plan.table.calls,
        "seconds": round(seconds, 6),
        "outputs": {name: _describe(batch) for name, batch in outputs.items()},
        "saved": None if output is None else str(output),
    }
    if as_json:
        print_json(found)
    else:
        _print_summary(found)


def _check_output(output: Path | None) -> None:
    """Refuse a file that could not be written before the run, not after it."""
    from flowsched.cli.results import RESULT_SUFFIXES

    if output is None:
        return
    if output.suffix not in RESULT_SUFFIXES:
        raise typer.BadParameter(f"{output} must end in {', '.join(RESULT_SUFFIXES)}", param_hint="--output")
    if not output.parent.is_dir() or output.is_dir():
        raise typer.BadParameter(f"no file can be written at {output}", param_hint="--output")


def _find_models(job: Job, address: str | None) -> Mapping[str, Any]:
    from flowsched.address import load_object
    from flowsched.errors import AddressError

    models = job.models if address is None else load_object(address)
    if models is None:
        raise AddressError(
            f"{job.address} holds no models. Give --models file.py:name or package.module:name, a dict by node"
        )
    found: Mapping[str, Any] = models
    return found


def _find_inputs(
    job: Job, graph: Graph, address: str | None, samples: int | None
) -> tuple[Mapping[str, Any], int]:
    """Return the batches of the step and how many rows they have."""
    from flowsched.address import load_data
    from flowsched.batch import take
    from flowsched.errors import AddressError, InputError, Problem
    from flowsched.runtime.inputs import count_inputs

    data = job.data if address is None else load_data(address, graph.sources)
    if data is None:
        raise AddressError(f"{job.address} holds no data. Give --data, batches by source")
    rows = count_inputs(graph, data)
    if samples is None or samples == rows:
        return data, rows
    if samples > rows:
        message, mend = (
            f"{samples} samples are asked for, the data has {rows}",
            "Ask for fewer, or give more data",
        )
        raise InputError(
            f"input of graph {graph.name!r}", [Problem("wrong-samples", "--samples", message, mend)]
        )
    return {name: take(batch, 0, samples) for name, batch in data.items()}, samples


def _save(outputs: Mapping[str, Any], plan: Plan, path: Path | None) -> None:
    from flowsched.cli.results import save_results

    if path is None:
        return
    try:
        save_results(outputs, plan, path)
    except OSError as error:
        raise typer.BadParameter(f"{path}: {error.strerror}", param_hint="--output") from None


def _describe(batch: Any) -> dict[str, Any]:
    from flowsched.batch import count_rows

    columns = [str(key) for key in batch] if isinstance(batch, Mapping) else []
    return {"rows": count_rows(batch) or 0, "columns": columns}


def _print_summary(found: Mapping[str, Any]) -> None:
    rows = [(name, said["rows"], ", ".join(said["columns"])) for name, said in found["outputs"].items()]
    print_table(["output", "rows", "columns"], rows)
    print(
        f"{found['samples']} samples, {found['calls']} calls, {found['seconds']:.3f} s on {found['backend']}"
    )
    if found["saved"]:
        print(f"saved to {found['saved']}")
    sys.stdout.flush()
