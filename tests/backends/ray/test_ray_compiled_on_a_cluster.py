"""A compiled graph whose actors stand on several nodes of a cluster."""

from __future__ import annotations

import numpy as np
import pytest
from flowsched_ray import RayBackend

import flowsched as fs
from tests.backends.ray import workers

pytestmark = [pytest.mark.timeout(180), pytest.mark.usefixtures("cluster")]

GRAPH = fs.Graph(
    "apart",
    sources=["x"],
    nodes=[
        fs.Node("left", ["x"], replicas=2, batch_size=4, expand=2),
        fs.Node("right", ["left"], replicas=3, batch_size=3),
    ],
)
MODELS = {"left": workers.Grows, "right": workers.add_one}
APART = {"left": {"left": 1}, "right": {"right": 1}}


def test_steps_of_several_sizes_return_what_threads_return() -> None:
    backend = RayBackend(compiled=True, resources=APART)
    with fs.start(GRAPH, MODELS, backend=backend, max_in_flight=100) as session:
        for samples in (16, 16, 9, 0, 16):
            inputs = {"x": np.arange(samples)}
            expected = fs.run(fs.compile(GRAPH, samples), MODELS, inputs)["right"]
            assert np.array_equal(session.run(inputs)["right"], expected)
