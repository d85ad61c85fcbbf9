"""The jobs that peers are given, and workers that idle, sleep or tell what they were called with.

Rows are floats: the first says what calls are to do, the second is the sample's number. A worker appends what it
tells to a file of its own, so that nothing but rows has to come back from a peer.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

import flowsched as fs
from benchmarks.workload import COSTS, WIDTH, seed_graph

Array = NDArray[Any]

IDLE, SLEPT, TOLD = 0.0, 1.0, 2.0
"""What calls do: nothing, sleep for what they cost, or sleep and tell."""


@dataclass(frozen=True)
class Job:
    """A graph and what its calls cost.

    Attributes:
        title: what it is called.
        graph: the graph.
        samples: rows of its input.
        costs: seconds a call and seconds a row, by node.
    """

    title: str
    graph: fs.Graph
    samples: int
    costs: Mapping[str, tuple[float, float]]

    def prompts(self, kind: float) -> Array:
        """Return the input for calls of this kind."""
        rows = np.zeros((self.samples, WIDTH), np.float32)
        rows[:, 0], rows[:, 1] = kind, range(self.samples)
        return rows

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the nodes whose rows come back."""
        return tuple(self.graph.outputs)


def chain_graph(batch_size: int | None) -> fs.Graph:
    """Return a chain of 3, 4 and 2 replicas."""
    return fs.Graph(
        "chain",
        sources=["prompts"],
        nodes=[
            fs.Node("generate", inputs=["prompts"], replicas=3, batch_size=batch_size),
            fs.Node("score", inputs=["generate"], replicas=4, batch_size=batch_size),
            fs.Node("pack", inputs=["score"], replicas=2, batch_size=batch_size),
        ],
    )


SEED = Job("the seed's graph, 16 samples", seed_graph(), 16, COSTS)
CHAIN = Job(
    "a chain of 3, 4 and 2 replicas in batches of 32, 1,000 samples",
    chain_graph(32),
    1_000,
    {"generate": (0.002, 0.0009), "score": (0.002, 0.0012), "pack": (0.002, 0.0006)},
)
WHOLE = Job(
    "the same chain, one call of each replica with its whole part",
    chain_graph(None),
    CHAIN.samples,
    CHAIN.costs,
)
JOBS = {"seed": SEED, "chain": CHAIN, "whole": WHOLE}


class Worker:
    """A model of a node; takes and returns rows as numpy arrays or torch tensors.

    Args:
        node: the node.
        costs: seconds a call and seconds a row.
        folder: where the file stands that it appends to.
    """

    def __init__(self, node: str, costs: tuple[float, float], folder: str) -> None:
        self._costs = costs
        self._file = Path(folder) / f"{node}-{os.getpid()}-{uuid4().hex[:8]}"

    def __call__(self, batch: Any, *_: Any) -> Any:
        kind = float(batch[0, 0])
        if kind != IDLE:
            began, (each, row) = time.time(), self._costs
            time.sleep(each + row * len(batch))
            if kind == TOLD:
                self._tell(began, [int(number) for number in batch[:, 1]])
        return batch

    def _tell(self, began: float, samples: list[int]) -> None:
        line = json.dumps({"began": began, "ended": time.time(), "samples": samples})
        with self._file.open("a") as file:
            file.write(line + "\n")
