"""The examples of the page on evaluation run as they stand there, and its outputs are what is printed."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, DistributedSampler

from flowsched.data import ShardedLoader
from flowsched.data.check_loader import Checked
from flowsched.data.checking import RankRows, compare
from flowsched.data.reading import Way, read_loader
from flowsched.inspect.sharding import render_deal
from flowsched.sharding import Deal, Sharding

PAGE = (Path(__file__).parents[2] / "docs" / "is-my-evaluation-exact.md").read_text()

GIVEN = """
import torch
dataset = torch.arange(21.0)[:, None]
model = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Flatten(0))
torch.nn.init.ones_(model[0].weight)
torch.nn.init.zeros_(model[0].bias)
"""

DEEPSPEED = """
import deepspeed
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False  # it would be compiled first
deepspeed.init_distributed("gloo")
config = {
    "train_micro_batch_size_per_gpu": 16, "gradient_accumulation_steps": 1, "zero_optimization": {"stage": 1},
    "optimizer": {"type": "SGD", "params": {"lr": 1e-4}}, "zero_allow_untested_optimizer": True,
}
"""

TRANSFORMERS = """
import tempfile
from transformers import TrainingArguments

class Rows(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = model
    def forward(self, x):
        return {"loss": self.layer(x).mean()}

arguments = TrainingArguments(
    output_dir=tempfile.mkdtemp(), use_cpu=True, report_to=[], per_device_eval_batch_size=4, disable_tqdm=True
)
trainer = ExactTrainer(model=Rows(), args=arguments, eval_dataset=[{"x": row} for row in dataset])
metrics = trainer.evaluate()
assert metrics["eval_loss"] == 10.0, metrics
"""


def example(heading: str, number: int = 0) -> Any:
    """Return an example of a section."""
    return re.findall(
        r"```python\n(.*?)```", PAGE.split(f"### {heading}\n")[1].split("\n### ")[0], re.DOTALL
    )[number]


def run_here(program: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(GIVEN + program, names)
    return names


def run_apart(program: str) -> None:
    """Run a program as the only rank of a launcher's."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    alone = {
        "RANK": "0",
        "LOCAL_RANK": "0",
        "WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    environment = {**os.environ, **alone, "DS_ACCELERATOR": "cpu", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]


def test_a_loop_of_ones_own_counts_each_sample_once() -> None:
    names = run_here(example("torchrun, or a loop of your own"))
    assert (names["scores"], names["mean"]) == (list(range(21)), 10.0)


def test_the_mean_is_over_rows_not_over_batches() -> None:
    imports = "from flowsched.data import ShardedLoader, weighted_mean\n"
    assert run_here(imports + example("torchrun, or a loop of your own", 1))["mean"] == 10.0


def test_a_data_loader_that_stays_reads_each_sample_once() -> None:
    batches = list(run_here(example("A DataLoader that stays"))["loader"])
    assert torch.cat(batches).flatten().tolist() == list(range(21))


def test_accelerate_gathers_strings_once() -> None:
    pytest.importorskip("accelerate")
    program = GIVEN + example("accelerate").replace("Accelerator()", "Accelerator(cpu=True)")
    run_apart(
        program.replace(".tolist()]", ".flatten().tolist()]") + "\nassert answers[20] == '20.0', answers\n"
    )


def test_training_goes_on_where_it_stopped() -> None:
    program = example("Training with DDP, and going on after a stop")
    whole = run_here("state = None\n" + program)
    assert (whole["state"]["epoch"], whole["state"]["seen"]) == (1, 21)
    begun = ShardedLoader(whole["dataset"], 16, "even", shuffle=True)
    begun.set_epoch(1)
    next(iter(begun))
    rest = run_here(f"state = {begun.state_dict()!r}\n" + program)
    assert (len(rest["batch"]), rest["state"]["seen"]) == (5, 21)


@pytest.mark.timeout(200)
def test_deepspeed_trains_on_even_batches() -> None:
    pytest.importorskip("deepspeed")
    run_apart(GIVEN + DEEPSPEED + example("DeepSpeed") + "\nassert engine.global_steps == 4\n")


@pytest.mark.timeout(200)
def test_a_trainer_evaluates_each_sample_once() -> None:
    pytest.importorskip("transformers")
    run_apart(GIVEN + example("transformers") + TRANSFORMERS)


def test_the_outputs_on_the_page_are_what_is_printed() -> None:
    assert f"```\n{render_deal(Deal(Sharding(1021, 4, 16)))}\n```" in PAGE
    data: Any = torch.arange(1021)
    readings = [
        read_loader(
            DataLoader(data, batch_size=16, sampler=DistributedSampler(data, 4, rank, shuffle=False)),
            Way.IDS,
        )
        for rank in range(4)
    ]
    found = compare([RankRows(one.keys, one.sizes, one.real) for one in readings], 1021)
    said = str(Checked(found, Way.IDS, tuple(one.kind for one in readings), ()))
    assert f"```\n{said.split('  For evaluation')[0].rstrip()}\n```" in PAGE
