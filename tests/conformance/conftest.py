"""What every backend is tried with."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import flowsched as fs
from flowsched.batch import count_rows

BACKENDS = ("threads",)

RunGraph: TypeAlias = Callable[..., fs.Outputs]


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    """Name of the backend under test."""
    name: str = request.param
    return name


@pytest.fixture
def run_graph(backend: str) -> RunGraph:
    """Run one step of a graph on the backend: ``run_graph(graph, models, inputs, **options of fs.run)``."""

    def run(
        graph: fs.Graph, models: Mapping[str, Any], inputs: Mapping[str, Any], **options: Any
    ) -> fs.Outputs:
        samples = count_rows(inputs[graph.sources[0]]) or 0
        return fs.run(fs.compile(graph, samples), models, inputs, backend=backend, **options)

    return run


@pytest.fixture(autouse=True)
def _nothing_is_left_running() -> Iterator[None]:
    """Every test, whatever it makes fail, must leave no thread in this process."""
    before = set(threading.enumerate())
    yield
    until = time.monotonic() + 10
    while left := [thread for thread in threading.enumerate() if thread not in before and thread.is_alive()]:
        assert time.monotonic() < until, f"threads are left: {[thread.name for thread in left]}"
        time.sleep(0.005)


@pytest.fixture
def meeting(tmp_path: Path) -> Iterator[Path]:
    """A folder in which workers of any process meet: whoever waits there goes on when ``release`` exists."""
    yield tmp_path
    (tmp_path / "release").touch()
