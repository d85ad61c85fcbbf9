"""Workers that note what they are given: which calls there were, in which order, and how many at once."""

from __future__ import annotations

import json
import time
import uuid
import weakref
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import flowsched as fs
from flowsched.testing.workers import meeting


class Noted(NamedTuple):
    """One call as its worker saw it.

    Attributes:
        node, replica: as its context said.
        start, stop: the rows that it read, as its context said.
        turn: how many calls the replica object had had before.
        token: which replica object it was.
        alone: whether no other call was under way in that object.
        samples: for each input, the samples that were in it.
    """

    node: str
    replica: int
    start: int
    stop: int
    turn: int
    token: str
    alone: bool
    samples: list[list[int]]

    @property
    def place(self) -> tuple[str, int, int, int]:
        """Which call of the plan it is."""
        return self.node, self.replica, self.start, self.stop


class Noting:
    """Passes on sample ids, and leaves a note of each call in a folder, also of calls whose output nobody reads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.token = uuid.uuid4().hex
        self.turn = 0
        self.inside = 0

    def __call__(self, *batches: Any, context: fs.Context) -> Any:
        self.inside += 1
        alone, turn = self.inside == 1, self.turn
        self.turn += 1
        time.sleep(0.001)  # or two calls at once could miss each other
        samples = [batch.tolist() for batch in batches]
        noted = Noted(
            context.node, context.replica, context.start, context.stop, turn, self.token, alone, samples
        )
        (self.folder / f"{uuid.uuid4().hex}.note").write_text(json.dumps(noted))
        self.inside -= 1
        return batches[0]


def noted_in(folder: Path) -> list[Noted]:
    """Return the notes of all calls, by node, replica and turn."""
    notes = (Noted(*json.loads(path.read_text())) for path in folder.glob("*.note"))
    return sorted(notes, key=lambda noted: (noted.node, noted.replica, noted.turn))


class Alive:
    """Says how many of the batches that it made before, in this process, are still alive when a call begins."""

    def __init__(self, column: str, pause: float = 0.0) -> None:
        self.column = column
        self.pause = pause
        self.made: list[weakref.ref[Any]] = []

    def __call__(self, batch: Any) -> Any:
        self.made = [made for made in self.made if made() is not None]
        time.sleep(self.pause)
        made = batch["x"] + 1
        self.made.append(weakref.ref(made))
        return {**batch, "x": made, self.column: np.full(len(made), len(self.made))}


class Needed:
    """Says how many of its rows are made, this call's included, that readers have not ended with.

    It serves a node of one replica. Its readers mark what they have ended with (:func:`read`).
    """

    def __init__(self, folder: Path, readers: tuple[str, ...]) -> None:
        self.folder = folder
        self.readers = readers
        self.made = 0

    def __call__(self, batch: Any) -> Any:
        self.made += len(batch["x"])
        ended = min(meeting.arrivals(self.folder, reader) for reader in self.readers)
        return {**batch, "needed": np.full(len(batch["x"]), self.made - ended)}


def read(batch: Any, context: fs.Context, folder: Path, pause: float = 0.0) -> Any:
    """Pass a batch on, and mark at the very end how many rows the node has ended with."""
    time.sleep(pause)
    meeting.arrive(folder, context.node, len(batch["x"]))
    return rows_of(batch)


def rows_of(batch: Any) -> Any:
    """Return a copy, so that nothing of what was read is kept alive."""
    return {name: column.copy() for name, column in batch.items()}
