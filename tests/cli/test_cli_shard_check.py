"""``flowsched shard --check`` in real processes, on torch's, accelerate's and flowsched's own loaders."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Cli

pytestmark = pytest.mark.timeout(180)

LOADERS = '''
import os

import torch
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

data = TensorDataset(torch.arange(1021.0) * 2)
few = TensorDataset(torch.arange(5.0))


def distributed():  # needs a process group, and makes none
    return DataLoader(data, batch_size=16, sampler=DistributedSampler(data, shuffle=False))


def accelerated():
    from accelerate import Accelerator

    return Accelerator(cpu=True).prepare(DataLoader(few, batch_size=16))


def dispatched():
    from accelerate import Accelerator
    from accelerate.utils import DataLoaderConfiguration

    options = DataLoaderConfiguration(dispatch_batches=True)
    return Accelerator(cpu=True, dataloader_config=options).prepare(DataLoader(data, batch_size=16, shuffle=True))


def exact():
    from flowsched.data.loader import ShardedLoader

    return ShardedLoader(data, 16)


def three():
    from flowsched.data.loader import ShardedLoader

    return ShardedLoader(data.tensors[0][:3], 16)


class Failing:
    def __iter__(self):
        yield torch.arange(3)
        if os.environ.get("RANK") == "1":
            raise RuntimeError("bad row 17")


loader = Failing()
number = 3
'''  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "job.py").write_text(LOADERS)
    return tmp_path


def start(folder: Path, *arguments: str, launcher: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *launcher, "-m", "flowsched", "shard", "--check", *arguments]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore", "TOKENIZERS_PARALLELISM": "false"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=150, check=False
    )


def found_by(folder: Path, *arguments: str, ends: int, ranks: int = 4) -> Any:
    done = start(folder, *arguments, "--ranks", str(ranks), "--json")
    assert done.returncode == ends, done.stderr[-3_000:]
    return json.loads(done.stdout)


def test_torchs_sampler_is_found_to_repeat(folder: Path) -> None:
    found = found_by(folder, "job.py:distributed", ends=5)
    assert (found["rows"], found["expected"], found["missing"]) == (1024, 1021, [])
    assert [one["id"] for one in found["repeated"]] == [0, 1, 2]


def test_accelerate_is_found_to_process_64_rows_for_5_samples(folder: Path) -> None:
    pytest.importorskip("accelerate")
    found = found_by(folder, "job.py:accelerated", ends=5)
    assert (found["rows"], sum(one["times"] - 1 for one in found["repeated"])) == (64, 59)
    assert [one["rows"] for one in found["ranks"]] == [16] * 4


def test_batches_that_rank_0_hands_out_are_known_by_id(folder: Path) -> None:
    pytest.importorskip("accelerate")
    found = found_by(folder, "job.py:dispatched", ends=5)
    assert (found["by"], found["rows"], len(found["repeated"]), found["missing"]) == ("ids", 1024, 3, [])


def test_flowscheds_loader_is_found_exact(folder: Path) -> None:
    found = found_by(folder, "job.py:exact", ends=0)
    assert (found["exact"], found["even"], found["rows"]) == (True, True, 1021)
    assert found["verdict"] == "EXACT: each of 1,021 samples is read once"


def test_ranks_without_batches_are_said_and_end_well_unless_they_must_be_even(folder: Path) -> None:
    assert [one["batches"] for one in found_by(folder, "job.py:three", ends=0)["ranks"]] == [1, 1, 1, 0]
    assert not found_by(folder, "job.py:three", "--even", ends=5)["even"]


def test_a_loader_that_fails_on_one_rank_ends_all_and_is_said_once(folder: Path) -> None:
    done = start(folder, "job.py", "--ranks", "3")
    assert done.returncode == 3
    assert done.stderr.count("rank 1 of 3: reading the loader failed with RuntimeError: bad row 17") == 1
    assert "in __iter__" in done.stderr
    assert done.stdout == ""


def test_torchrun_starts_it_and_only_rank_0_speaks(folder: Path) -> None:
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    done = start(folder, "job.py:exact", launcher=launcher)
    assert done.returncode == 0, done.stderr[-3_000:]
    assert done.stdout.count("EXACT: each of 1,021 samples is read once") == 1
    done = start(folder, "job.py:distributed", "--json", launcher=launcher)
    assert done.returncode == 1  # torchrun's own for ranks that end with 5
    assert json.loads(done.stdout)["rows"] == 1022
    assert "exitcode  : 5" in done.stderr


def test_ranks_that_a_launcher_without_a_store_has_started_find_each_other(folder: Path) -> None:
    program = "import sys; sys.argv[0] = 'flowsched'; from flowsched.cli import main; main()"
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    command = [sys.executable, "-c", program, "shard", "--check", "job.py:distributed"]
    ranks = [
        subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **shared, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        said = [process.communicate(timeout=120)[0] for process in ranks]
    finally:
        for process in ranks:
            process.kill()
    assert [process.returncode for process in ranks] == [5, 5]
    assert "1,022 rows in all, of 1,021 samples; 1 of them again" in said[0]
    assert said[1] == ""


def test_one_process_says_that_it_is_alone(folder: Path) -> None:
    done = start(folder, "job.py:exact")
    assert done.returncode == 0, done.stderr
    assert "This is what one process reads" in done.stdout


def test_what_is_no_loader_is_refused(folder: Path) -> None:
    done = start(folder, "job.py:number")
    assert done.returncode == 3
    assert "job.py:number is a int, which gives no batches" in done.stderr
    done = start(folder, "job.py:lodaer")
    assert done.returncode == 3
    assert "loader" in done.stderr


ODD = """
import os
import signal
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, IterableDataset


class Asking(IterableDataset):
    def __iter__(self):
        print("hello from the stream")
        known = dist.is_initialized()
        rank, ranks = (dist.get_rank(), dist.get_world_size()) if known else (0, 1)
        return iter(range(rank, 12, ranks))


print("hello from the module")
asking = DataLoader(Asking(), batch_size=3)
loaders = [asking, asking]


def killed():
    if os.environ.get("RANK") == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    return asking


def gone():
    if os.environ.get("RANK") == "1":
        os._exit(7)
    return asking


def sized(size):
    return DataLoader(Asking(), batch_size=size)
"""


def test_a_stream_that_asks_for_its_rank_is_exact_and_what_it_prints_is_no_json(folder: Path) -> None:
    (folder / "odd.py").write_text(ODD)
    found = found_by(folder, "odd.py:asking", "--samples", "12", ends=0, ranks=2)
    assert found["verdict"] == "EXACT: each of 12 samples is read once"


@pytest.mark.parametrize(("name", "how"), [("killed", "signal 9"), ("gone", "code 7")])
def test_a_rank_that_ends_without_a_word_is_named(folder: Path, name: str, how: str) -> None:
    (folder / "odd.py").write_text(ODD)
    done = start(folder, f"odd.py:{name}", "--ranks", "2")
    assert done.returncode == 3
    assert f"error: rank 1 ended with {how}" in done.stderr


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"WORLD_SIZE": "x"}, "the environment says WORLD_SIZE='x', which is no rank below its WORLD_SIZE"),
        ({"WORLD_SIZE": ""}, "the environment says WORLD_SIZE=''"),
        ({"WORLD_SIZE": "2", "RANK": "0"}, "MASTER_ADDR and MASTER_PORT are not set"),
    ],
)
def test_a_launch_that_says_too_little_is_refused_with_the_mend(
    folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], said: str
) -> None:
    (folder / "odd.py").write_text(ODD)
    monkeypatch.chdir(folder)
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    err = cli("shard", "--check", "odd.py:asking", ends=3).err
    assert said in err
    assert "Start processes with torchrun" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sized", "needs arguments: size. Give a function without arguments"),
        ("loaders", "is a list of 2 loaders. Give one loader"),
    ],
)
def test_what_is_not_one_loader_is_refused(
    folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    (folder / "odd.py").write_text(ODD)
    monkeypatch.chdir(folder)
    assert said in cli("shard", "--check", f"odd.py:{name}", ends=3).err
