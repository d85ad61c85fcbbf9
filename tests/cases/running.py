"""What the tests that run reported cases share."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import flowsched as fs
from tests.cases.reported import CASES, graph_of

Ids = NDArray[np.int64]


class Passing:
    """Models that pass sample ids on and note what they were given.

    Attributes:
        seen: for each node, the ids of each of its calls.
    """

    def __init__(self, graph: fs.Graph) -> None:
        self.seen: defaultdict[str, list[list[int]]] = defaultdict(list)
        self.models = {node.name: self._worker(node) for node in graph}

    def _worker(self, node: fs.Node) -> Callable[..., Ids]:
        def pass_on(*inputs: Ids) -> Ids:
            assert all(np.array_equal(batch, inputs[0]) for batch in inputs), "inputs are aligned"
            self.seen[node.name].append(inputs[0].tolist())
            return np.repeat(inputs[0], node.expand)

        return pass_on


class Counts:
    """A number that several threads change, and the most it has been.

    Attributes:
        now: the number.
        most: the most it has been.
    """

    def __init__(self) -> None:
        self.now = self.most = 0
        self._lock = threading.Lock()

    def add(self, change: int) -> None:
        """Change the number."""
        with self._lock:
            self.now += change
            self.most = max(self.most, self.now)


def run_alone(node: fs.Node, ids: Ids) -> Ids:
    """Return what one node makes of the ids that it passes on."""
    graph = fs.Graph("alone", sources=["source"], nodes=[node])
    out: Ids = fs.run(fs.compile(graph, len(ids)), Passing(graph).models, {"source": ids})[node.name]
    return out


def run_case(case: str, models: dict[str, Any]) -> fs.Outputs:
    """Run a case with these models; the inputs are the sample ids."""
    samples = CASES[case]["num_samples"]
    return fs.run(fs.compile(graph_of(case), samples), models, {"source": np.arange(samples)})


def assert_mentions(error: BaseException, words: Sequence[str]) -> None:
    """Assert that the message of an error has all these words."""
    for word in words:
        assert word in str(error), f"{word!r} is not in {error}"
