"""Few bytes are alive in the object store, whatever the windows would allow."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

import flowsched as fs
from tests.backends.ray import workers

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("cluster")]

GRAPH = fs.Graph("g", ["x"], [fs.Node("a", ["x"], batch_size=1), fs.Node("b", ["a"], batch_size=1)])


def test_outputs_that_are_still_read_stay_within_max_bytes(tmp_path: Path) -> None:
    steps = []
    models = {
        "a": partial(workers.make_megabytes, folder=tmp_path),
        "b": partial(workers.count_made, folder=tmp_path),
    }
    with fs.start(GRAPH, models, backend="ray", max_bytes=3_500_000, max_in_flight=100) as session:
        for _ in range(2):
            steps.append(session.run({"x": np.arange(30)})["b"])
            for mark in tmp_path.glob("made-*"):
                mark.unlink()
    for made in steps:
        ahead = made - np.arange(1, 31)  # of the call that reads the last of them
        assert ahead.max() <= 3
        assert made[-1] == 30


def test_a_call_that_makes_more_than_max_bytes_still_runs(tmp_path: Path) -> None:
    models = {
        "a": partial(workers.make_megabytes, folder=tmp_path),
        "b": partial(workers.count_made, folder=tmp_path),
    }
    with fs.start(GRAPH, models, backend="ray", max_bytes=1) as session:
        for _ in range(2):
            assert session.run({"x": np.arange(5)})["b"].tolist() == [1, 2, 3, 4, 5]
            for mark in tmp_path.glob("made-*"):
                mark.unlink()
