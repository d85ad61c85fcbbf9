"""The Ray backend passes the conformance suite."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator

import pytest
import ray
from flowsched_ray import RayBackend

from flowsched.testing import BackendSuite


@pytest.fixture(scope="module", autouse=True)
def _one_instance() -> Iterator[None]:
    """Ray on this machine, started once; programs of their own join it."""
    ray.init("local", num_cpus=8, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    os.environ["RAY_ADDRESS"] = ray.get_runtime_context().gcs_address
    yield
    del os.environ["RAY_ADDRESS"]
    ray.shutdown()


class TestRay(BackendSuite):
    """A replica takes about a second to start: few are, few examples are tried, and processes are reused."""

    backend = RayBackend(reuse=True)
    required = True
    patience = {"grace": 20.0}  # noqa: RUF012 - the suite only reads it
    cuts = ((1, None), (2, 2))
    widest = 3
    examples = 2
    at_once = 15.0
    time_limit = 110.0

    def running(self) -> set[object]:
        """What runs now, without threads of Ray's own, which end with the connection."""
        return {one for one in super().running() if not isinstance(one, threading._DummyThread)}
