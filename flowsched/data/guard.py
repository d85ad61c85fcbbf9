"""What would deal samples a second time is found when it asks, and refused.

Launchers' own loaders read a data set, a batch sampler or a loader before they split it. Those of flowsched look at
who is asking. Nothing of the launcher is changed, and what only passes batches on is let through.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any

from flowsched.errors import FlowschedError, Problem
from flowsched.sharding import ShardingError

_LOADER = "Give it a flowsched.data.ShardedLoader, which accelerator.prepare hands back as it is"


class DoubleShardingError(FlowschedError):
    """Something would deal to processes what flowsched has dealt to them already.

    Args:
        what: what it would deal, such as ``ShardedBatchSampler``.
        sharder: who would, such as ``accelerate (BatchSamplerShard)``.
        mend: how to put it right.
    """

    code = "double-sharding"

    def __init__(self, what: str, sharder: str, mend: str) -> None:
        self.what, self.sharder, self.mend = what, sharder, mend
        super().__init__(
            f"{sharder} would deal out a second time what this {what} has dealt to this process already, "
            f"and samples would be lost or repeated. {mend}"
        )

    def __reduce__(self) -> tuple[type[DoubleShardingError], tuple[str, str, str]]:
        return type(self), (self.what, self.sharder, self.mend)


@dataclass(frozen=True)
class Sharder:
    """A function of another library that splits data between processes.

    Attributes:
        name: what it is called in messages.
        module: where it is.
        function: how its qualified name begins.
        mend: what to do instead.
        parts: from its variables, between how many processes it splits.
    """

    name: str
    module: str
    function: str
    mend: str
    parts: Callable[[Mapping[str, Any]], int] = lambda variables: 2  # noqa: ARG005


def _of_self(*names: str) -> Callable[[Mapping[str, Any]], int]:
    """Return what reads a number from ``self``; one that is not there counts as several."""

    def read(variables: Mapping[str, Any]) -> int:
        found = variables.get("self")
        for name in names:
            found = getattr(found, name, None)
        return found if isinstance(found, int) else 2

    return read


_ACCELERATE = "accelerate.data_loader"
_DEEPSPEED_MEND = "Call deepspeed.initialize without training_data, and iterate over the loader itself"
_RAY_MEND = "Give prepare_data_loader add_dist_sampler=False, or leave it out and give the loader device="

SHARDERS = (
    Sharder(
        "accelerator.prepare (accelerate)",
        _ACCELERATE,
        "prepare_data_loader",
        _LOADER,
        lambda variables: int(variables.get("num_processes") or 1),
    ),
    Sharder(
        "accelerate (BatchSamplerShard)",
        _ACCELERATE,
        "BatchSamplerShard.",
        _LOADER,
        _of_self("num_processes"),
    ),
    Sharder(
        "accelerate (IterableDatasetShard)",
        _ACCELERATE,
        "IterableDatasetShard.",
        f"{_LOADER}, or leave the DataLoader of this one out of prepare",
        _of_self("num_processes"),
    ),
    Sharder(
        "accelerate (DataLoaderDispatcher)",
        _ACCELERATE,
        "DataLoaderDispatcher.",
        f"{_LOADER}, or leave the DataLoader of this one out of prepare",
        _of_self("state", "num_processes"),
    ),
    Sharder(
        "torch (DistributedSampler)",
        "torch.utils.data.distributed",
        "DistributedSampler.",
        "Leave DistributedSampler out",
        _of_self("num_replicas"),
    ),
    Sharder(
        "DeepSpeed (DeepSpeedDataLoader)",
        "deepspeed.runtime.dataloader",
        "DeepSpeedDataLoader.",
        _DEEPSPEED_MEND,
    ),
    Sharder(
        "DeepSpeed (training_data)",
        "deepspeed.runtime.engine",
        "DeepSpeedEngine.deepspeed_io",
        _DEEPSPEED_MEND,
    ),
    Sharder(
        "Ray Train (prepare_data_loader)",
        "ray.train.torch.train_loop_utils",
        "_TorchAccelerator.prepare_data_loader.<locals>.with_sampler",
        _RAY_MEND,
    ),
    Sharder(
        "Ray Train (prepare_data_loader)",
        "ray.train.v2.torch.train_loop_utils",
        "prepare_data_loader.<locals>.with_sampler",
        _RAY_MEND,
    ),
)


def refuse_second_sharding(asked: object) -> None:
    """Refuse if the call of the caller's comes from something that would deal out its data again.

    Args:
        asked: what is asked: a sampler, a data set or a loader of flowsched.

    Raises:
        DoubleShardingError: it does; who it is, and what to do.
    """
    found = [sharder for frame in _askers(sys._getframe(2)) if (sharder := _find_sharder(frame))]
    if found:
        raise DoubleShardingError(type(asked).__name__, found[-1].name, found[-1].mend)


def refuse_batching(asked: object) -> None:
    """Refuse to be iterated by a ``DataLoader`` that makes batches of what are batches already.

    Raises:
        ShardingError: it was not given ``batch_size=None``.
    """
    caller = sys._getframe(2)
    if caller.f_globals.get("__name__") != "torch.utils.data._utils.fetch":
        return
    if caller.f_locals.get("auto_collation"):
        problem = Problem(
            "batched-twice",
            "batch_size",
            f"the DataLoader would make batches of the batches of this {type(asked).__name__}",
            "Give the DataLoader batch_size=None",
        )
        raise ShardingError("the loader", [problem])


def _askers(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield frames from the innermost on: what the user has wrapped around samples or data may be among them."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def _find_sharder(frame: FrameType) -> Sharder | None:
    module, function = frame.f_globals.get("__name__"), frame.f_code.co_qualname
    for sharder in SHARDERS:
        if module == sharder.module and function.startswith(sharder.function):
            return sharder if sharder.parts(frame.f_locals) > 1 else None
    return None
