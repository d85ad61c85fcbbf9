"""What Ray raises, told as flowsched's errors: which replica, which call, and why."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import ray
from ray import exceptions as rx

from flowsched.backend import Step, unpack_error
from flowsched.errors import BackendError, OutputError, ReplicaLostError, say_exception
from flowsched_ray.actor import CallFailed

_ASKS = 1.0  # seconds that Ray is given to tell an error that it has
_LOST = (rx.RayActorError, rx.NodeDiedError, rx.ObjectLostError, rx.WorkerCrashedError, rx.OutOfMemoryError)
_COLOURS = re.compile(r"\x1b\[\d+m")
_DETAIL = ("class_name:", "actor_id:", "namespace:", "pid:", "ip:", "name:")


def explain_lost_while_built(error: BaseException, node: str, replica: int) -> BaseException:
    """Return the error of a replica that could not be built."""
    own = carried_error(error)
    if own is not None:
        return own
    lost = ReplicaLostError(say_lost(error), "Its constructor ended the process", node=node, replica=replica)
    lost.__cause__ = error
    return lost


def carried_error(error: BaseException) -> BaseException | None:
    """Return the error that an actor raised on purpose, if this is one."""
    cause = getattr(error, "cause", None)
    return unpack_error(cause.packed) if isinstance(cause, CallFailed) else None


def explain(error: rx.RayError, step: Step, signals: Mapping[int, Any]) -> BaseException:
    """Return the error that a step ends with.

    Args:
        error: what Ray raised.
        step: the step.
        signals: refs of the calls' signals by the number of the call, in the order of submission.
    """
    own = carried_error(error)
    if own is not None:
        return own
    if isinstance(error, rx.LocalRayletDiedError):
        return BackendError(f"the Ray node of this process has died: {say_exception(error)}")
    call = find_first_failed(signals)
    if call is None:
        return error
    found = error_of(signals[call]) or error
    own = carried_error(found)
    if own is not None:
        return own
    if isinstance(found, _LOST):
        lost = ReplicaLostError(say_lost(found), _mend(found), **step.place(call))
        lost.__cause__ = found
        return lost
    cause = getattr(found, "cause", None) or found
    problem = f"Ray could not hand over what it read or made: {say_exception(cause)}"
    refused = OutputError(problem, "Return columns of plain data", **step.place(call))
    refused.__cause__ = cause
    return refused


def find_first_failed(signals: Mapping[int, Any]) -> int | None:
    """Return the first call, in the order of submission, whose signal is an error: others only follow from it."""
    calls = {ref: call for call, ref in signals.items()}
    refs: list[Any] = list(calls)
    if not refs:
        return None
    ready, _ = ray.wait(refs, num_returns=len(refs), timeout=0, fetch_local=False)
    return next((calls[ref] for ref in ready if error_of(ref) is not None), None)


def error_of(ref: Any) -> rx.RayError | None:
    """Return the error that a ready object is, or None."""
    try:
        ray.get(ref, timeout=_ASKS)
    except rx.GetTimeoutError:
        return None
    except rx.RayError as error:
        return error
    return None


def say_lost(error: BaseException) -> str:
    """Return what Ray says of how an actor was lost, without its guesses."""
    text = (
        _COLOURS.sub("", str(error))
        .removeprefix(rx.ActorDiedError.BASE_ERROR_MSG)
        .partition("Some common causes")[0]
    )
    lines = [line.strip() for line in text.splitlines()]
    told = [line for line in lines if line and not line.startswith(_DETAIL)]
    return " ".join(told).removesuffix(".") or type(error).__name__


def _mend(error: BaseException) -> str:
    if isinstance(error, rx.OutOfMemoryError):
        return (
            "Ray killed it to save the machine's memory: use a smaller batch size or fewer replicas a machine"
        )
    return "Look for what ended the process in Ray's logs; max_restarts= and max_task_retries= run its calls again"
