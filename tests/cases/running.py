"""What the tests that run reported cases share. Workers of any process leave notes in a folder."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import flowsched as fs
from flowsched.backend import Backend
from tests.cases.reported import CASES, graph_of

Ids = NDArray[np.int64]


class Notes:
    """What workers note, in the order in which they do, whatever processes they are in.

    Args:
        folder: where the notes are kept.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "notes"

    def add(self, note: Any) -> None:
        """Add a note: anything that JSON can say."""
        line = (json.dumps(note) + "\n").encode()
        end = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(end, line)  # at once, so that lines of several processes do not mix
        finally:
            os.close(end)

    def all(self) -> list[Any]:
        """Return all notes."""
        if not self._file.exists():
            return []
        return [json.loads(line) for line in self._file.read_text().splitlines()]


def pass_on(*inputs: Ids, node: str, expand: int, notes: Notes) -> Ids:
    """Return the ids that were read, and note them."""
    assert all(np.array_equal(batch, inputs[0]) for batch in inputs), "inputs are aligned"
    notes.add([node, inputs[0].tolist()])
    return np.repeat(inputs[0], expand)


def passing(graph: fs.Graph, folder: Path) -> dict[str, Callable[..., Ids]]:
    """Return models of a graph that pass sample ids on, and note them."""
    notes = Notes(folder)
    return {node.name: partial(pass_on, node=node.name, expand=node.expand, notes=notes) for node in graph}


def passed(node: str, folder: Path) -> list[list[int]]:
    """Return the ids of each call of a node that passed them on."""
    return [ids for name, ids in Notes(folder).all() if name == node]


def run_alone(node: fs.Node, ids: Ids, backend: str | Backend) -> Ids:
    """Return what one node makes of the ids that it passes on."""
    graph = fs.Graph("alone", sources=["source"], nodes=[node])
    plan = fs.compile(graph, len(ids))
    out: Ids = fs.run(plan, {node.name: _same}, {"source": ids}, backend=backend)[node.name]
    return out


def _same(ids: Ids) -> Ids:
    return ids


def run_case(case: str, models: dict[str, Any], backend: str | Backend) -> fs.Outputs:
    """Run a case with these models; the inputs are the sample ids."""
    samples = CASES[case]["num_samples"]
    plan = fs.compile(graph_of(case), samples)
    return fs.run(plan, models, {"source": np.arange(samples)}, backend=backend)


def assert_mentions(error: BaseException, words: Sequence[str]) -> None:
    """Assert that the message of an error has all these words."""
    for word in words:
        assert word in str(error), f"{word!r} is not in {error}"
