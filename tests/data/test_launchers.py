"""S02: evaluation and training are the same under every launcher as it is, with 4 real processes, and with one."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.data.sessions import run_session

SCRIPT = Path(__file__).with_name("launched.py")
LONGEST = 200  # seconds

LAUNCHERS = {
    "alone": ([], "torch"),
    "torchrun": (["torch.distributed.run", "--standalone", "--nproc-per-node=4"], "torch"),
    "accelerate": (["accelerate.commands.launch", "--multi_gpu"], "accelerate"),
    "accelerate with DeepSpeed": (
        ["accelerate.commands.launch", "--use_deepspeed", "--zero_stage=1"],
        "accelerate",
    ),
    "deepspeed": (["deepspeed.launcher.runner", "--num_gpus=4"], "deepspeed"),
}
ACCELERATES = ["--num_processes=4", "--num_machines=1", "--mixed_precision=no", "--dynamo_backend=no"]
NEEDED = {
    "accelerate": ["accelerate"],
    "accelerate with DeepSpeed": ["accelerate", "deepspeed", "transformers"],
    "deepspeed": ["deepspeed"],
}
MODELS = {
    "alone": "Linear",
    "torchrun": "DistributedDataParallel",
    "accelerate": "DistributedDataParallel",
    "accelerate with DeepSpeed": "DeepSpeedEngine",
    "deepspeed": "DeepSpeedEngine",
}
# Of rank 0: the batches of an evaluation of so many samples, on 4 ranks and on one.
LENGTHS = {1024: 16, 1000: 16, 1030: 17, 40: 1, 7: 1, 1021: 16, 1023: 16, 3: 1, 1: 1, 0: 0}
ALONE = {1024: 64, 1000: 63, 1030: 65, 40: 3, 7: 1, 1021: 64, 1023: 64, 3: 1, 1: 1, 0: 0}


@pytest.fixture(scope="module", params=LAUNCHERS)
def launched(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, list[Any]]:
    """A launcher, and what each of its processes has written."""
    name = request.param
    for library in NEEDED.get(name, []):
        pytest.importorskip(library, reason=f"{library} is not installed: pip install {library}")
    folder = tmp_path_factory.mktemp("launched")
    launch(name, folder)
    ranks = 1 if name == "alone" else 4
    return name, [json.loads((folder / f"{rank}.json").read_text()) for rank in range(ranks)]


def launch(name: str, folder: Path) -> None:
    """Run the script under a launcher, and leave no process behind."""
    launcher, kind = LAUNCHERS[name]
    port = find_port()
    options = {
        "accelerate.commands.launch": [*ACCELERATES, f"--main_process_port={port}"],
        "deepspeed.launcher.runner": [f"--master_port={port}"],
    }
    command = [sys.executable, *(["-m", *launcher, *options.get(launcher[0], [])] if launcher else [])]
    run_session(
        [*command, str(SCRIPT), kind, str(folder)],
        folder / "log",
        LONGEST,
        OMP_NUM_THREADS="1",
        DS_ACCELERATOR="cpu",
        CUDA_VISIBLE_DEVICES="",
    )


def find_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


pytestmark = pytest.mark.timeout(LONGEST + 40)


def test_it_is_what_the_launcher_trains_with(launched: tuple[str, list[Any]]) -> None:
    name, reports = launched
    assert {report["model"] for report in reports} == {MODELS[name]}
    assert {report["ranks"] for report in reports} == {len(reports)}


def test_each_rank_trains_on_all_of_its_own_rollouts(launched: tuple[str, list[Any]]) -> None:
    assert [report["own"] for report in launched[1]] == [{"length": 8, "rows": True}] * len(launched[1])


def test_evaluations_have_as_many_batches_as_they_should(launched: tuple[str, list[Any]]) -> None:
    expected = ALONE if launched[0] == "alone" else LENGTHS
    found = {int(samples): one["length"] for samples, one in launched[1][0]["evaluated"].items()}
    assert found == expected


def test_each_rank_gathers_every_row_once_in_order(launched: tuple[str, list[Any]]) -> None:
    for report in launched[1]:
        for samples, evaluation in report["evaluated"].items():
            count = int(samples)
            assert evaluation["gathered"] == list(range(count))
            assert evaluation["texts"]
            assert evaluation["mean"] == (pytest.approx((count - 1) / 2) if count else None)


def test_uneven_batches_train_as_the_mean_over_all_rows_and_empty_ones_take_part(
    launched: tuple[str, list[Any]],
) -> None:
    name, reports = launched
    whole = 16 if name == "alone" else 64
    slope = 1.0
    for samples, ranks_without in (("100", 0), ("3", 1 if name != "alone" else 0)):
        values = np.arange(int(samples)) / int(samples)
        steps = [values[start : start + whole] for start in range(0, len(values), whole)]
        expected = []
        for step in steps:
            slope -= 0.1 * float(step.mean())
            expected.append(slope)
        for report in reports:
            assert report["all"][samples]["slopes"] == pytest.approx(expected, rel=1e-5)
        rows = [report["all"][samples]["rows"] for report in reports]
        assert [sum(step) for step in zip(*rows, strict=True)] == [len(step) for step in steps]
        assert sum(own == [0] for own in rows) == ranks_without


def test_what_would_deal_again_is_refused_on_every_rank(launched: tuple[str, list[Any]]) -> None:
    name, reports = launched
    expected = {
        "alone": {},
        "torchrun": {},
        "deepspeed": dict.fromkeys(("loader", "data set"), "Call deepspeed.initialize without training_data"),
    }.get(name, dict.fromkeys(("batch sampler", "data set"), "Give it a flowsched.data.ShardedLoader"))
    for report in reports:
        assert report["refused"].keys() == expected.keys()
        for kind, mend in expected.items():
            assert mend in report["refused"][kind]
