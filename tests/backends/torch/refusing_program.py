"""The program of the tests of steps that a rank refuses: what each rank raised is written to a file of its own.

``python refusing_program.py FOLDER SETTINGS``; the settings are JSON: ``options`` of the backend, ``group``, the
``kind`` of what goes wrong, ``at``: the ranks where it does, ``late``: ranks that come late, ``ends``: whether
the program ends with the error.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import flowsched as fs
from flowsched.events import Event, StepStarted

RANK = int(os.environ.get("RANK", "0"))
LATE = 1.0  # seconds
GRAPH = fs.Graph("pair", ["x", "y"], [fs.Node("a", ["x", "y"], replicas=3, batch_size=2)])
OTHER = fs.Graph("other", ["x"], [fs.Node("a", ["x"], replicas=3)])
MODELS: dict[str, Any] = {"a": lambda x, y: x + y}


class WatchError(RuntimeError):
    """What an observer raises."""


class Built:
    """Takes a minute to be built, or dies of it."""

    def __init__(self, settings: dict[str, Any], context: fs.ReplicaContext) -> None:
        if context.replica == settings.get("dies"):
            os.kill(os.getpid(), signal.SIGKILL)
        if context.replica == settings.get("slow"):
            time.sleep(60.0)

    def __call__(self, x: Any, y: Any) -> Any:
        return x + y


def good(samples: int) -> dict[str, Any]:
    return {"x": np.arange(samples), "y": np.ones(samples, int)}


def names(session: fs.Session) -> None:
    session.run({"x": np.arange(4), "z": np.arange(4)})


def lengths(session: fs.Session) -> None:
    session.run({"x": np.arange(4), "y": np.arange(5)})


def other_rows(session: fs.Session) -> None:
    session.run(good(8))


def other_plan(session: fs.Session) -> None:
    session.run_plan(fs.compile(OTHER, 6), None)


def other_samples(session: fs.Session) -> None:
    session.run_plan(fs.compile(GRAPH, 8), None)


KINDS: dict[str, Callable[[fs.Session], None]] = {
    "names": names,
    "lengths": lengths,
    "other rows": other_rows,
    "other plan": other_plan,
    "other samples": other_samples,
}


def run(settings: dict[str, Any]) -> dict[str, Any]:
    """Run three steps, the second of which is the bad one."""
    said: dict[str, Any] = {"outputs": []}
    options, bad = settings.get("options", {}), RANK in settings["at"]
    holds = RANK == 0 or options.get("inputs_on") == "all"
    with fs.start(GRAPH, MODELS, backend="torch", **options) as session:
        for number, samples in enumerate([6, 6, 9]):
            if number == 1 and RANK in settings.get("late", []):
                time.sleep(LATE)
            began = time.monotonic()
            try:
                if number == 1 and bad:
                    KINDS[settings["kind"]](session)
                elif (
                    number == 1 and settings["kind"].startswith("other") and settings["kind"] != "other rows"
                ):
                    session.run_plan(fs.compile(GRAPH, samples), good(samples) if holds else None)
                else:
                    outputs = session.run(good(samples) if holds else None)
                    said["outputs"].append(outputs["a"].tolist() if outputs.are_here else "elsewhere")
            except Exception as error:  # noqa: BLE001 - what it is, the test looks at
                said["errors"] = [*said.get("errors", []), [number, type(error).__name__, str(error)]]
                said["seconds"] = time.monotonic() - began
                if settings.get("ends"):
                    break
    return said


def run_at_once(settings: dict[str, Any]) -> dict[str, Any]:
    """Run one step by fs.run, whose inputs, models or placement are bad."""
    if RANK in settings.get("late", []):
        time.sleep(LATE)
    options, bad = settings.get("options", {}), RANK in settings.get("at", [])
    inputs: Any = good(6) if RANK == 0 or options.get("inputs_on") == "all" else None
    models, kind = MODELS, settings["kind"]
    if bad and kind == "inputs":
        inputs = {"x": np.arange(4)}
    elif bad and kind == "models":
        models = {"b": MODELS["a"]}
    elif bad and kind == "placement":
        options = {**options, "placement": {"a": [0, 1, 5]}}
    elif bad and kind == "device":
        options = {**options, "devices": {"a": ["cpu", "cdua", "cpu"]}}
    elif kind == "build":
        models = {"a": partial(Built, settings)}
    elif kind == "rows":
        models = {"a": lambda x, y: [threading.Lock() if bad else n for n in x + y]}
    elif bad and kind == "interface":
        options = {**options, "interface": "nothing0"}

    def watch(event: Event) -> None:
        if bad and kind == "observer" and isinstance(event, StepStarted):
            raise WatchError("no room for a step")

    said: dict[str, Any] = {}
    began = time.monotonic()
    try:
        fs.run(fs.compile(GRAPH, 6), models, inputs, backend="torch", observer=watch, **options)
    except Exception as error:  # noqa: BLE001 - likewise
        said["errors"] = [[0, type(error).__name__, str(error)]]
    return said | {"seconds": time.monotonic() - began}


def main() -> None:
    folder, settings = Path(sys.argv[1]), json.loads(sys.argv[2])
    import torch.distributed as dist

    if settings.get("group"):
        dist.init_process_group("gloo")
    said = run(settings) if settings["kind"] in KINDS else run_at_once(settings)
    (folder / f"rank-{RANK}.json").write_text(json.dumps(said))
    if settings.get("group"):
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
