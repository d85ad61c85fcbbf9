"""A Ray instance on this machine for as long as a comparison lasts."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import ray

STORE = 2 * 1024**3


@contextmanager
def local_ray(cpus: int = 2, store: int = STORE) -> Iterator[None]:
    """Start a Ray instance that says little, and end it.

    Args:
        cpus: processors that it may hand out.
        store: bytes of its object store.
    """
    ray.init(
        address="local",
        num_cpus=cpus,
        include_dashboard=False,
        object_store_memory=store,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    try:
        yield
    finally:
        ray.shutdown()
