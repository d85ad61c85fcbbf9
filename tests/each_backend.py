"""How tests that run on several backends come by each of them, at the least cost."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from flowsched.backend import Backend

BACKENDS = ("threads", "torch", "ray")


@contextmanager
def backend_named(name: str) -> Iterator[str | Backend]:
    """Yield a backend that many tests may share: starting its processes is what costs."""
    if name == "torch":
        from flowsched_torch import TorchBackend

        yield TorchBackend()  # it forks all ranks from one process that has torch loaded
    elif name == "ray":
        import ray
        from flowsched_ray import RayBackend

        ray.init(
            "local", num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR
        )
        try:
            yield RayBackend(reuse=True)
        finally:
            ray.shutdown()
    else:
        yield name
