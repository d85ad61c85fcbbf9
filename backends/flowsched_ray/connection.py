"""This process's connection to Ray: joined, found, or started and then shut down again."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable

import ray

from flowsched.errors import BackendError, say_exception

# Ray's connection is one for the whole process, and so is the count of the sessions that hold one we started.
_LOCK = threading.Lock()
_HELD: list[object] = []


def connect(address: str | None, log_to_driver: bool) -> Callable[[], None]:
    """Connect to Ray and return what ends this session's hold on the connection.

    A connection that the user made before is used and left; one that is made here ends with the last session.

    Raises:
        BackendError: there is no cluster at ``address``, or this process is connected to another one.
    """
    with _LOCK:
        if ray.is_initialized():
            _refuse_other(address)
            return _hold() if _HELD else _leave
        try:
            if address is None and not os.environ.get("RAY_ADDRESS"):
                ray.init(
                    address="local",
                    include_dashboard=False,
                    log_to_driver=log_to_driver,
                    logging_level=logging.WARNING,
                )
            else:
                ray.init(address=address, log_to_driver=log_to_driver, logging_level=logging.WARNING)
        except Exception as error:  # Ray may fail in any way
            where = f"at {address!r}" if address is not None else "here"
            raise BackendError(
                f"no Ray cluster can be reached or started {where}: {say_exception(error)}. "
                "Start one with: ray start --head, or give no address= to start one here"
            ) from error
        return _hold()


def _hold() -> Callable[[], None]:
    mine = object()
    _HELD.append(mine)

    def end() -> None:
        with _LOCK:
            if mine not in _HELD:
                return
            _HELD.remove(mine)
            if not _HELD:
                ray.shutdown()

    return end


def _leave() -> None:
    """Leave the connection to whoever made it."""


def _refuse_other(address: str | None) -> None:
    if address in (None, "auto"):
        return
    found = ray.get_runtime_context().gcs_address
    if address != found:
        raise BackendError(
            f"address={address!r} was given, and this process is connected to the Ray cluster at {found!r} "
            "already. Leave address= out to use that one, or call ray.shutdown() before"
        )
