"""What each process of a launcher runs, as a user's script would: training, evaluation, and a report of both.

``LAUNCHER launched.py KIND FOLDER`` writes ``FOLDER/RANK.json``.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.data import DataLoader

from flowsched.data import (
    DoubleShardingError,
    ShardedBatchSampler,
    ShardedDataset,
    ShardedLoader,
    gather,
    weighted_mean,
)

EVALUATED = (1024, 1000, 1030, 40, 7, 1021, 1023, 3, 1, 0)
TRAINED = (100, 3)
BATCH = 16
ROLLOUTS = 128


@dataclass(frozen=True)
class Setup:
    """A launcher's way of training.

    Attributes:
        model: what is trained, as the launcher wraps it.
        prepare: what its users do with loaders.
        step: one step of training, of a loss.
        refused: what must be refused, by name.
    """

    model: Callable[[Tensor], Tensor]
    prepare: Callable[[Any], Any]
    step: Callable[[Tensor], None]
    refused: dict[str, Callable[[], Any]]


def make_model() -> nn.Module:
    """A line through 0 with slope 1, on all ranks."""
    model = nn.Linear(1, 1, bias=False)
    nn.init.ones_(model.weight)
    return model


def own_loaders() -> dict[str, Any]:
    """What launchers would split again: torch's loader with our sampler, or of our data set."""
    return {
        "batch sampler": DataLoader(range(40), batch_sampler=ShardedBatchSampler(40, 4)),  # type: ignore[arg-type]
        "data set": DataLoader(ShardedDataset(range(40), 4), batch_size=None),
    }


def set_up_torch() -> Setup:
    """torchrun: DistributedDataParallel by hand; alone where there is no launcher."""
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    module = make_model()
    model = nn.parallel.DistributedDataParallel(module) if dist.is_initialized() else module
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(loss: Tensor) -> None:
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return Setup(model, lambda loader: loader, step, {})


def set_up_accelerate() -> Setup:
    """``accelerate launch``, with DistributedDataParallel or DeepSpeed as it says."""
    without_compiling()
    from accelerate import Accelerator, InitProcessGroupKwargs

    by_deepspeed = "ACCELERATE_USE_DEEPSPEED" in os.environ  # which accelerate knows only without cpu=True
    backend = InitProcessGroupKwargs(backend="gloo")
    accelerator = Accelerator(cpu=not by_deepspeed, kwargs_handlers=[backend])
    module = make_model()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    train = ShardedLoader(range(8), BATCH, "local")
    model, optimizer, again = accelerator.prepare(module, optimizer, train)
    if again is not train:
        raise AssertionError("prepare has changed a sharded loader")

    def step(loss: Tensor) -> None:
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()

    refused: dict[str, Callable[[], Any]] = {
        name: partial(_iterate_prepared, accelerator, loader) for name, loader in own_loaders().items()
    }
    return Setup(model, accelerator.prepare, step, refused)


def _iterate_prepared(accelerator: Any, loader: Any) -> None:
    list(accelerator.prepare(loader))


def set_up_deepspeed() -> Setup:
    """``deepspeed``: its engine, with ZeRO-1."""
    without_compiling()
    import deepspeed

    deepspeed.init_distributed("gloo")

    def initialize(**given: Any) -> Any:
        module = make_model()
        settings = {
            "train_micro_batch_size_per_gpu": BATCH,
            "zero_optimization": {"stage": 1},
            "zero_allow_untested_optimizer": True,
        }
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        return deepspeed.initialize(model=module, optimizer=optimizer, config=settings, **given)[0]

    engine = initialize()

    def step(loss: Tensor) -> None:
        engine.backward(loss)
        engine.step()

    refused = {
        "loader": lambda: initialize(training_data=ShardedLoader(range(40), 4)),
        "data set": lambda: initialize(training_data=ShardedDataset(range(40), 4)),
    }
    return Setup(engine, lambda loader: loader, step, refused)


def without_compiling() -> None:
    """Let DeepSpeed use gloo alone: on a CPU it would compile an extension for shared memory first."""
    if "ACCELERATE_USE_DEEPSPEED" in os.environ or "deepspeed" in sys.argv:
        import deepspeed

        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False


def train_on_own(setup: Setup, rank: int) -> dict[str, Any]:
    """One epoch over rollouts that each rank has made itself."""
    own = torch.arange(ROLLOUTS) + rank * ROLLOUTS
    loader = setup.prepare(ShardedLoader(own, BATCH, "local", shuffle=True))
    rows = []
    for batch in loader:
        rows += batch.tolist()
        setup.step(0.0 * setup.model(batch[:, None].float()).mean())
    return {"length": len(loader), "rows": sorted(rows) == own.tolist()}


def train_on_all(setup: Setup, samples: int) -> dict[str, Any]:
    """One epoch of which each step's loss, and so its gradient, is the mean over the rows of all ranks."""
    values = torch.arange(samples) / samples  # below 1, where DeepSpeed clips gradients
    loader = setup.prepare(ShardedLoader(values, BATCH, "even"))
    slopes, lengths = [], []
    for batch in loader:
        loss = setup.model(batch[:, None]).sum() / max(1, len(batch))
        setup.step(loader.weight * loss)
        lengths.append(len(batch))
        slopes.append(float(setup.model(torch.ones(1, 1)).detach()))
    return {"length": len(loader), "rows": lengths, "slopes": slopes}


def evaluate(setup: Setup, samples: int) -> dict[str, Any]:
    """One evaluation: how many batches, which rows come together, and the mean over them."""
    loader = setup.prepare(ShardedLoader(range(samples), BATCH))
    rows, texts = [], []
    for batch in loader:
        rows.append(batch)
        texts += [f"answer {one}" for one in batch.tolist()]
    own = torch.cat(rows) if rows else torch.empty(0, dtype=torch.int64)
    told = gather(texts, loader)
    return {
        "length": len(loader),
        "gathered": gather(own, loader).tolist(),
        "texts": told == [f"answer {one}" for one in range(samples)],
        "mean": float(weighted_mean(own.double())) if samples else None,
    }


def find_refusals(setup: Setup) -> dict[str, str]:
    """What is said of loaders that the launcher would split again."""
    said = {}
    for name, attempt in setup.refused.items():
        said[name] = "nothing"
        with contextlib.suppress(Exception):
            try:
                attempt()
            except DoubleShardingError as error:
                said[name] = str(error)
    return said


def main(kind: str, folder: str) -> None:
    """Run everything, and write what came of it."""
    torch.set_num_threads(1)
    setup = {"torch": set_up_torch, "accelerate": set_up_accelerate, "deepspeed": set_up_deepspeed}[kind]()
    rank = dist.get_rank() if dist.is_initialized() else 0
    report = {
        "ranks": dist.get_world_size() if dist.is_initialized() else 1,
        "model": type(setup.model).__name__,
        "own": train_on_own(setup, rank),
        "all": {samples: train_on_all(setup, samples) for samples in TRAINED},
        "evaluated": {samples: evaluate(setup, samples) for samples in EVALUATED},
        "refused": find_refusals(setup),
    }
    Path(folder, f"{rank}.json").write_text(json.dumps(report))
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main(*(one for one in sys.argv[1:] if not one.startswith("--local_rank")))  # DeepSpeed's own argument
