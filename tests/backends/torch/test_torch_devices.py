"""Devices that are not there are refused before a process is started or a replica is built."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from flowsched_torch import TorchBackend

import flowsched as fs
from flowsched.errors import BackendError
from tests.backends.torch.launching import by_hand

pytestmark = pytest.mark.timeout(110)

GRAPH = fs.Graph("g", ["x"], [fs.Node("a", ["x"], replicas=2), fs.Node("b", ["a"])])
PLAN = fs.compile(GRAPH, 4)
MODELS: dict[str, Any] = {"a": lambda rows: rows + 1, "b": lambda rows: rows * 2}


def _refused(match: str, **options: Any) -> None:
    backend = TorchBackend(start="local", **options)
    with pytest.raises(BackendError, match=match):
        fs.run(PLAN, MODELS, {"x": np.arange(4)}, backend=backend)
    assert backend._forking is None  # nothing was started


@pytest.mark.parametrize("device", ["cdua", "cuda:x", "cuda:-1", "", "cuda :0", "CUDA"])
def test_a_device_that_torch_does_not_know_is_refused_with_those_that_it_knows(device: str) -> None:
    _refused(r"device= gives replica 0 of 'a' the device .*does not know.*Known kinds.*cuda", device=device)
    _refused(r"devices= of node 'b' gives replica 0 of 'b' the device", devices={"b": [device]})


def test_a_misspelt_device_is_told_with_the_right_name() -> None:
    _refused(r"Did you mean 'cuda'\?", device="cdua")


@pytest.fixture
def cudas(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Have torch say how many CUDA devices there are."""
    found = SimpleNamespace(count=0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: found.count)
    return found


@pytest.mark.parametrize("device", ["cuda", "cuda:0", "cuda:9"])
def test_cuda_is_refused_where_there_is_none(cudas: Any, device: str) -> None:
    cudas.count = 0
    _refused(
        r"the device 'cuda:?\d?', and torch .* finds no cuda device.*Install a torch built", device=device
    )


@pytest.mark.parametrize("device", ["cuda:2", "cuda:999"])
def test_a_cuda_device_beyond_those_that_are_there_is_refused(cudas: Any, device: str) -> None:
    cudas.count = 2
    _refused(rf"replica 0 of 'b' the device '{device}'.*has cuda:0 to cuda:1 on", devices={"b": [device]})


def test_more_ranks_than_cuda_devices_are_refused_by_rank(cudas: Any) -> None:
    cudas.count = 1
    _refused(r"gives each rank one device, rank 1 the device 'cuda:1'.*has cuda:0 on", device="cuda", ranks=3)


def test_a_device_that_is_given_to_no_replica_that_is_built_is_not_looked_at(cudas: Any) -> None:
    cudas.count = 0
    plan = fs.compile(GRAPH, 1)  # which builds one replica of a
    backend = TorchBackend(start="local", devices={"a": ["cpu", "cuda:0"]})
    out = fs.run(plan, MODELS, {"x": np.arange(1)}, backend=backend)
    assert out["b"].tolist() == [2]


def test_a_device_that_one_rank_does_not_have_is_told_to_all(tmp_path: Path) -> None:
    settings = {"kind": "device", "at": [1]}
    launched = by_hand(tmp_path, 2, settings, program=Path(__file__).with_name("refusing_program.py"))
    assert sorted(launched.said) == [0, 1], launched.output
    for said in launched.said.values():
        assert said["errors"][0][1] == "BackendError"
        assert "devices= of node 'a' gives replica 1 of 'a' the device 'cdua'" in said["errors"][0][2]
        assert said["seconds"] < 8.0
