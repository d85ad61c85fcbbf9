"""What a launcher should have set and has not is told by name, with the command that sets it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flowsched_torch import TorchBackend

import flowsched as fs
from flowsched.errors import BackendError

pytestmark = pytest.mark.timeout(60)

PLAN = fs.compile(fs.Graph("g", ["x"], [fs.Node("a", ["x"])]), 4)
LAUNCHED = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"}
TORCHRUN = r"torchrun --nproc-per-node"


@pytest.fixture(autouse=True)
def _no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*LAUNCHED, "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)


def _set(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def _refused(match: str, **options: Any) -> None:
    with pytest.raises(BackendError, match=match):
        fs.run(PLAN, {"a": lambda rows: rows}, {"x": np.arange(4)}, backend=TorchBackend(**options))


def test_start_torchrun_without_a_launcher_is_refused_with_the_command_that_is_one() -> None:
    _refused(rf"none of RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT is set.*{TORCHRUN}", start="torchrun")


@pytest.mark.parametrize("start", ["torchrun", None])
@pytest.mark.parametrize("missing", LAUNCHED)
def test_a_variable_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, missing: str, start: Any
) -> None:
    _set(monkeypatch, **{name: value for name, value in LAUNCHED.items() if name != missing})
    _refused(rf"and {missing} is not\. .*{TORCHRUN}", start=start)
    monkeypatch.setenv(missing, "")
    _refused(rf"and {missing} is not\. .*{TORCHRUN}", start=start)


def test_all_variables_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    _set(monkeypatch, RANK="0", WORLD_SIZE="2")
    _refused(r"RANK and WORLD_SIZE are set, .*MASTER_ADDR and MASTER_PORT are not.*start='local'")


@pytest.mark.parametrize("start", ["torchrun", None])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RANK", "x"),
        ("RANK", "-1"),
        ("RANK", "1.0"),
        ("RANK", "²"),
        ("WORLD_SIZE", "two"),
        ("WORLD_SIZE", "0"),
        ("MASTER_PORT", "http"),
        ("MASTER_PORT", "65536"),
    ],
)
def test_a_variable_that_holds_no_number_is_named_with_what_it_holds(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, start: Any
) -> None:
    _set(monkeypatch, **{**LAUNCHED, name: value})
    _refused(rf"the variable {name} is '{value}', which is no whole number.*{TORCHRUN}", start=start)


def test_a_rank_beyond_the_number_of_ranks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _set(monkeypatch, **{**LAUNCHED, "RANK": "2"})
    _refused(r"RANK is 2, and WORLD_SIZE 2: ranks are numbered from 0 to 1")


def test_a_local_rank_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _set(monkeypatch, **{**LAUNCHED, "WORLD_SIZE": "1", "MASTER_PORT": "0", "LOCAL_RANK": "first"})
    _refused(r"the variable LOCAL_RANK is 'first'")


@pytest.mark.parametrize("name", LAUNCHED)
def test_one_variable_alone_is_no_launcher(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, LAUNCHED[name])
    assert TorchBackend().is_home()
    assert TorchBackend(start="local").is_home()


def test_start_group_without_a_group_is_refused_with_the_mend() -> None:
    _refused(r"no process group is initialised. Call torch.distributed.init_process_group", start="group")
