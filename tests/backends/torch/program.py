"""The program that the tests run on every rank: one session, with what each rank saw written to a file of its own.

``python program.py FOLDER SETTINGS``; the settings are JSON, see :class:`Settings`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import flowsched as fs
from flowsched.events import CallEnded, Event, ReplicaBuilt

INNER, WIDE = 64, 100_000


@dataclass
class Settings:
    """What the program does.

    Attributes:
        options: of the backend.
        samples: of each step, one after the other.
        fault: what goes wrong: on which replica of node "a" or which rank it does.
        at: the replica or rank.
        group: whether the program initialises a process group first.
        repeat: how often the steps are run.
        wide: whether rows are so wide that they move on their own.
    """

    options: dict[str, Any] = field(default_factory=dict)
    samples: list[int] = field(default_factory=lambda: [12])
    fault: str = ""
    at: int = 0
    group: bool = False
    repeat: int = 1
    wide: bool = False


class UserError(Exception):
    """What the program's own model raises."""


class Model:
    """Adds one, or fails as the settings say."""

    def __init__(self, settings: Settings, context: fs.ReplicaContext) -> None:
        self.settings, self.replica = settings, context.replica
        if settings.fault == "build" and context.replica == settings.at:
            raise UserError("the weights are missing")

    def __call__(self, batch: Any, context: fs.Context) -> Any:
        if self.replica == self.settings.at and context.step == len(self.settings.samples) - 1:
            if self.settings.fault == "raise":
                raise UserError("a bad sample")
            if self.settings.fault == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.settings.fault == "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
        return {"x": batch["x"] + 1, "rank": np.full(len(batch["x"]), rank_here()), "text": batch["text"]}


def rank_here() -> int:
    return int(os.environ["RANK"])


def merge(made: Any, given: Any) -> Any:
    return {**made, "sum": made["x"].reshape(len(made["x"]), -1).sum(axis=1) + given["id"]}


def graph_for(settings: Settings) -> fs.Graph:
    other = settings.fault == "other graph" and rank_here() == settings.at
    return fs.Graph(
        "two",
        sources=["prompts"],
        nodes=[
            fs.Node("a", ["prompts"], replicas=3 + other, batch_size=2),
            fs.Node("b", ["a", "prompts"], replicas=2, batch_size=3),
        ],
    )


def inputs_for(samples: int, settings: Settings) -> dict[str, Any]:
    width = WIDE if settings.wide else INNER
    numbers = np.arange(samples * width, dtype=np.float64).reshape(samples, width)
    return {
        "prompts": {"id": np.arange(samples), "x": numbers, "text": [f"prompt {i}" for i in range(samples)]}
    }


def run(settings: Settings, folder: Path) -> dict[str, Any]:
    """Run the session and return what this rank saw."""
    options, here = settings.options, rank_here()
    holds = here == 0 or options.get("inputs_on") == "all"
    calls: list[str] = []
    built: list[str] = []

    def watch(event: Event) -> None:
        if isinstance(event, CallEnded):
            calls.append(event.node)
        elif isinstance(event, ReplicaBuilt):
            built.append(event.node)

    seed = here if settings.fault == "other seed" else 0
    models = {"a": partial(Model, settings), "b": merge}
    said: dict[str, Any] = {"outputs": []}
    began = time.monotonic()
    try:
        with fs.start(
            graph_for(settings), models, backend="torch", seed=seed, observer=watch, **options
        ) as session:
            for samples in settings.samples * settings.repeat:
                began = time.monotonic()
                outputs = session.run(inputs_for(samples, settings) if holds else None)
                said["outputs"].append(_say(outputs, samples, settings))
                (folder / "begun").touch()
    except Exception as error:  # noqa: BLE001 - what it is, the test looks at
        cause = error.__cause__
        said["error"] = [type(error).__name__, str(error), type(cause).__name__, str(cause)]
    said |= {"seconds": time.monotonic() - began, "calls": len(calls), "built": len(built)}
    return said


def _say(outputs: fs.Outputs, samples: int, settings: Settings) -> Any:
    if not outputs.are_here:
        return "elsewhere"
    if not samples:
        return {"right": outputs["b"] == [], "ranks": []}
    given, made = inputs_for(samples, settings)["prompts"], outputs["b"]
    return {
        "right": bool(
            np.array_equal(made["x"], given["x"] + 1)
            and np.array_equal(made["sum"], (given["x"] + 1).sum(axis=1) + given["id"])
            and made["text"] == given["text"]
        ),
        "ranks": sorted(set(made["rank"].tolist())),
    }


def main() -> None:
    folder, settings = Path(sys.argv[1]), Settings(**json.loads(sys.argv[2]))
    if settings.group:
        import torch.distributed as dist

        dist.init_process_group("gloo")
    said = run(settings, folder)
    if settings.group:
        import torch
        import torch.distributed as dist

        if "error" not in said:
            total = torch.ones(1)
            dist.all_reduce(total)
            said["group"] = [int(total), dist.get_world_size()]
    said["threads"] = [thread.name for thread in threading.enumerate()]
    (folder / f"rank-{rank_here()}.json").write_text(json.dumps(said))
    (folder / f"settings-{rank_here()}.json").write_text(json.dumps(asdict(settings)))
    sys.exit("error" in said)


if __name__ == "__main__":
    main()
