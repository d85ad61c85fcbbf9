"""What loaders of others give to 4 ranks where the samples do not fill their batches: the table of the docs.

``torchrun --standalone --nproc-per-node 4 benchmarks/loader_edges.py`` prints it; accelerate, transformers and
DeepSpeed are left out where they are not installed. No data is loaded, but by the two that gather.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from flowsched.data import ShardedLoader, check_loader
from flowsched.data.checking import Findings

SIZES = (1024, 1021, 1000, 7, 3)
BATCH_SIZE = 16
Make = Callable[["Rows"], Any]


class Rows(Dataset[dict[str, torch.Tensor]]):
    """Rows that hold their own ids."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"x": torch.tensor([float(index)]), "labels": torch.tensor(index)}


class Model(torch.nn.Module):
    """As little as a Trainer takes: the loss of a row is its id."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        torch.nn.init.ones_(self.layer.weight)
        torch.nn.init.zeros_(self.layer.bias)

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": self.layer(x).mean(), "ids": labels}


def loaders_of_torch() -> Iterator[tuple[str, Make]]:
    """Yield names and makers."""

    def sampled(rows: Rows, drop: bool, drop_batch: bool = False) -> Any:
        sampler: DistributedSampler[Any] = DistributedSampler(rows, shuffle=False, drop_last=drop)
        return DataLoader(rows, batch_size=BATCH_SIZE, sampler=sampler, drop_last=drop_batch)

    yield "torch: `DataLoader` alone", lambda rows: DataLoader(rows, batch_size=BATCH_SIZE)
    yield "torch: `DistributedSampler`", lambda rows: sampled(rows, drop=False)
    yield "torch: `DistributedSampler(drop_last=True)`", lambda rows: sampled(rows, drop=True)
    yield "torch: the same, and `DataLoader(drop_last=True)`", lambda rows: sampled(rows, True, True)


def loaders_of_accelerate() -> Iterator[tuple[str, Make]]:
    """Yield names and makers."""
    if find_spec("accelerate") is None:
        return
    from accelerate import Accelerator
    from accelerate.utils import DataLoaderConfiguration

    def prepare(rows: Rows, size: int = BATCH_SIZE, **options: bool) -> Any:
        config = DataLoaderConfiguration(**options)
        return Accelerator(cpu=True, dataloader_config=config).prepare(DataLoader(rows, batch_size=size))

    yield "accelerate: `prepare`", prepare
    yield "accelerate: `even_batches=False`", lambda rows: prepare(rows, even_batches=False)
    yield (
        "accelerate: `split_batches=True`, batches of 64",
        lambda rows: prepare(rows, 4 * BATCH_SIZE, split_batches=True),
    )
    yield "accelerate: `dispatch_batches=True`", lambda rows: prepare(rows, dispatch_batches=True)


def loaders_of_transformers() -> Iterator[tuple[str, Make]]:
    """Yield names and makers."""
    if find_spec("transformers") is None:
        return
    yield "transformers: `Trainer`, evaluation", lambda rows: trainer(rows).get_eval_dataloader()
    yield "transformers: `Trainer`, training", lambda rows: trainer(rows).get_train_dataloader()


def trainer(rows: Rows) -> Any:
    """Return a Trainer over the rows."""
    from transformers import Trainer, TrainingArguments

    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        use_cpu=True,
        per_device_eval_batch_size=BATCH_SIZE,
        per_device_train_batch_size=BATCH_SIZE,
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
    )
    return Trainer(model=Model(), args=arguments, eval_dataset=rows, train_dataset=rows)


def loaders_of_deepspeed() -> Iterator[tuple[str, Make]]:
    """Yield names and makers."""
    if find_spec("deepspeed") is None:
        return
    from deepspeed.runtime.dataloader import DeepSpeedDataLoader

    def load(rows: Rows) -> Any:  # as the engine makes it of training_data, and deepspeed_io of any data
        return DeepSpeedDataLoader(
            rows,
            BATCH_SIZE,
            pin_memory=False,
            local_rank=int(os.environ["LOCAL_RANK"]),
            tput_timer=None,
            data_parallel_world_size=dist.get_world_size(),
            data_parallel_rank=dist.get_rank(),
        )

    yield "DeepSpeed: `DeepSpeedDataLoader`", load


def loaders_of_flowsched() -> Iterator[tuple[str, Make]]:
    """Yield names and makers."""
    yield 'flowsched: `mode="exact"`', lambda rows: ShardedLoader(rows, BATCH_SIZE)
    yield 'flowsched: `mode="even"`', lambda rows: ShardedLoader(rows, BATCH_SIZE, "even")


def say(found: Findings) -> str:
    """Return rows, what is wrong with them, and batches for each rank.

    ``1,024, 3 again; 16`` means 16 batches on each rank.
    """
    parts = [f"{found.rows:,}"]
    parts += [f"**{found.surplus:,} again**"] * (found.surplus > 0)
    parts += [f"**{len(found.missing):,} missing**"] * (len(found.missing) > 0)
    batches = [rank.batches for rank in found.ranks]
    return f"{', '.join(parts)}; {batches[0] if found.even else ' '.join(map(str, batches))}"


def count_gathered(rows: Rows) -> tuple[int, int, int]:
    """Return how many rows ranks process, gather_for_metrics returns, and of these are different."""
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    loader = accelerator.prepare(DataLoader(rows, batch_size=BATCH_SIZE))
    processed, gathered = 0, torch.empty(0, dtype=torch.int64)
    for batch in loader:
        processed += len(batch["labels"]) * accelerator.num_processes
        gathered = torch.cat([gathered, accelerator.gather_for_metrics(batch["labels"])])
    return processed, len(gathered), len(set(gathered.tolist()))


def main() -> None:
    """Print the tables, on rank 0."""
    dist.init_process_group("gloo")
    names = [name for name in ("torch", "accelerate", "transformers", "deepspeed") if find_spec(name)]
    lines = [", ".join(f"{name} {version(name)}" for name in names), ""]
    lines += ["| loader | " + " | ".join(f"{size:,}" for size in SIZES) + " |", "|---|" + "---|" * len(SIZES)]
    families = (loaders_of_torch, loaders_of_accelerate, loaders_of_transformers, loaders_of_deepspeed)
    for family in (*families, loaders_of_flowsched):
        for name, make in family():
            cells = [say(check_loader(make(Rows(size))).findings) for size in SIZES]
            lines.append(f"| {name} | {' | '.join(cells)} |")
    if find_spec("accelerate"):
        gathered = [count_gathered(Rows(size)) for size in SIZES]
        lines += [
            "",
            "gather_for_metrics: "
            + "; ".join(f"{a:,} processed, {b:,} gathered, {c:,} different" for a, b, c in gathered),
        ]
    if find_spec("transformers"):
        told = [len(trainer(Rows(size)).predict(Rows(size)).predictions) for size in SIZES]
        lines.append(f"Trainer.predict: {', '.join(f'{rows:,}' for rows in told)} rows")
        losses = [trainer(Rows(size)).evaluate()["eval_loss"] for size in SIZES]
        means = [f"{loss:.6g} ({(size - 1) / 2:g})" for loss, size in zip(losses, SIZES, strict=True)]
        lines.append(f"Trainer.evaluate, eval_loss (and the mean over samples): {', '.join(means)}")
    if dist.get_rank() == 0:
        print("\n".join(lines))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
