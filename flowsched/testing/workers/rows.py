"""Workers that behave: each row of what they return depends on its own row alone.

What they observe (who made a row, in which call) travels in the rows.
"""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import Any

import numpy as np

import flowsched as fs
from flowsched.testing.workers import meeting


def pass_on(batch: Any) -> Any:
    """Return the very batch that was read."""
    return batch


def add_one(numbers: Any) -> Any:
    return numbers + 1


def add(left: Any, right: Any) -> Any:
    return left + right


def scale(numbers: Any, factor: int) -> Any:
    return numbers * factor


def join(*batches: Any) -> Any:
    """Return each input as a column of its own."""
    return {f"input{at}": batch for at, batch in enumerate(batches)}


def return_none(*_: Any) -> None:
    return None


def second(_: Any, batch: Any) -> Any:
    return batch


def empty_dict(_: Any) -> Any:
    return {}


def narrow(texts: Any) -> Any:
    """Return an array of texts that is as wide as the longest of them."""
    return np.array(texts.tolist())


def width(batch: Any) -> Any:
    """Return for each row how wide it is."""
    return np.full(len(batch), batch.shape[1])


def as_x(numbers: Any) -> Any:
    return {"x": numbers}


def copied(batch: Any) -> Any:
    return {name: column.copy() for name, column in batch.items()}


def add_and_repeat(left: Any, right: Any) -> Any:
    return repeat(left + right, times=3)


def draw_made(batch: Any, context: fs.Context) -> Any:
    """Return the seeds of the rows that are made, four for each that is read."""
    assert len(context.seeds) == len(batch)
    assert context.made_stop - context.made_start == len(context.made_seeds) == 4 * len(batch)
    return context.made_seeds


def repeat(numbers: Any, times: int) -> Any:
    """Return ``times`` rows for each, told apart by their last digits: 7 becomes 700, 701, ..."""
    return (numbers[:, None] * 100 + np.arange(times)).reshape(-1)


def sum_groups(numbers: Any, size: int) -> Any:
    return numbers.reshape(-1, size).sum(axis=1)


def subtract_group_mean(numbers: Any, size: int) -> Any:
    """Return what is meaningful only where whole groups stay together, as GRPO's advantages are."""
    groups = numbers.reshape(-1, size).astype(np.float64)
    return (groups - groups.mean(axis=1, keepdims=True)).reshape(-1)


def add_one_late(numbers: Any, context: fs.Context) -> Any:
    """Take so long that calls end in an order far from that of their rows."""
    time.sleep(0.001 * (int(context.seeds[0]) % 6))
    return numbers + 1


def add_one_a_little_late(numbers: Any) -> Any:
    time.sleep(0.0005)
    return numbers + 1


def observe_context(batch: Any, context: fs.Context) -> Any:
    """Return all that a context says, row by row."""
    rows = len(batch)
    return {
        "node": [context.node] * rows,
        "replica": np.full(rows, context.replica),
        "replicas": np.full(rows, context.replicas),
        "device": [context.device] * rows,
        "step": np.full(rows, context.step),
        "start": np.full(rows, context.start),
        "stop": np.full(rows, context.stop),
        "sample": context.sample_ids,
        "cancelled": np.full(rows, context.cancelled()),
        **observe_chance(batch, context=context),
    }


def observe_chance(batch: Any, *, context: fs.Context) -> Any:
    """Return what must not depend on replicas, batch size or backend."""
    noise = [context.rng(row).standard_normal() for row in range(len(batch))]
    return {"seed": context.seeds, "noise": np.array(noise, dtype=np.float64)}


class Scale:
    """Multiplies by what its constructor was given."""

    def __init__(self, factor: int = 2) -> None:
        self.factor = factor

    def __call__(self, numbers: Any) -> Any:
        return numbers * self.factor


class Shared:
    """Serves two nodes, the second of which sees what the first has left in the replica."""

    def __init__(self, context: fs.ReplicaContext, folder: Path | None = None) -> None:
        if folder is not None:
            meeting.arrive(folder, "built")
        self.context = context
        self.token = uuid.uuid4().hex
        self.generated = 0
        self.calls = 0

    def __call__(self, batch: Any) -> Any:
        """Say which replica this is and how often it was called."""
        self.calls += 1
        return self._said(len(batch))

    def generate(self, batch: Any) -> Any:
        self.generated += len(batch)
        return self._said(len(batch))

    def score(self, batch: Any) -> Any:
        return self._said(len(batch["token"]))

    def _said(self, rows: int) -> Any:
        return {
            "token": [self.token] * rows,
            "replica": np.full(rows, self.context.replica),
            "replicas": np.full(rows, self.context.replicas),
            "owner": [self.context.node] * rows,
            "generated": np.full(rows, self.generated),
            "calls": np.full(rows, self.calls),
            "rows": np.full(rows, rows),
        }


@fs.pads(ids=fs.Padding(-1, lengths="width"), mask=fs.Padding(0, side="left"))
class Padded:
    """Returns rows as wide as the largest number in its call."""

    def __call__(self, numbers: Any) -> Any:
        width = int(numbers.max())
        ids = np.broadcast_to(numbers[:, None], (len(numbers), width)).copy()
        return {
            "ids": ids,
            "mask": np.ones((len(numbers), width), dtype=bool),
            "wide": np.full(len(numbers), width),
        }


def undeclared(numbers: Any) -> Any:
    """Return rows of a width of their own without declaring padding."""
    return np.ones((len(numbers), int(numbers.max())))


class OnDevice:
    """Says which device its constructor and each of its calls were told."""

    def __init__(self, context: fs.ReplicaContext) -> None:
        self.device = context.device

    def __call__(self, batch: Any, context: fs.Context) -> Any:
        return {"built_on": [self.device] * len(batch), "called_on": [context.device] * len(batch)}
