"""What cannot be pickled, or not be read where it arrives, is told as that, with its place and its cause."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flowsched_torch import TorchBackend

import flowsched as fs
from flowsched.errors import BackendError, InputError, OutputError
from tests.backends.torch.launching import by_hand

pytestmark = pytest.mark.timeout(110)

PLAN = fs.compile(fs.Graph("g", ["x"], [fs.Node("a", ["x"], replicas=2)]), 4)


class Unreadable:
    """Raises what torch raises for tensors of a device that is not there, and others raise of their own."""

    def __init__(self, kind: type[Exception] = RuntimeError) -> None:
        self.kind = kind

    def __setstate__(self, state: dict[str, Any]) -> None:
        raise state["kind"]("no such device here")

    def __call__(self, rows: Any) -> Any:
        return rows


KINDS = pytest.mark.parametrize("kind", [RuntimeError, KeyError])


@KINDS
def test_a_model_that_cannot_be_read_in_a_rank(local: TorchBackend, kind: type[Exception]) -> None:
    with pytest.raises(
        BackendError, match=r"models cannot be read in the process of a rank.*no such device"
    ) as told:
        fs.run(PLAN, {"a": Unreadable(kind)}, {"x": np.arange(4)}, backend=local)
    assert isinstance(told.value.__cause__, kind)


@KINDS
def test_rows_that_cannot_be_read_by_their_reader(local: TorchBackend, kind: type[Exception]) -> None:
    rows = [Unreadable(kind) for _ in range(4)]
    with pytest.raises(
        OutputError, match=r"node 'a'.*cannot be brought to its process.*no such device"
    ) as told:
        fs.run(PLAN, {"a": lambda rows: rows}, {"x": rows}, backend=local)
    assert isinstance(told.value.__cause__, kind)


@KINDS
def test_outputs_that_cannot_be_read_at_home(local: TorchBackend, kind: type[Exception]) -> None:
    with pytest.raises(OutputError, match=r"node 'a'.*cannot be brought home.*no such device") as told:
        fs.run(PLAN, {"a": lambda rows: [Unreadable(kind) for _ in rows]}, {"x": np.arange(4)}, backend=local)
    assert isinstance(told.value.__cause__, kind)


def _lock(_: int) -> Any:
    return threading.Lock()


def _closure(_: int) -> Any:
    file = Path(os.devnull).open("w")  # noqa: SIM115 - it is what cannot be pickled
    return lambda: file


class UnpicklableError(Exception):
    """What a row's own pickling raises."""


class Refuses:
    """Raises when it is pickled."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> Any:
        raise UnpicklableError(f"not number {self.number}")


TWO = fs.Graph("g", ["x"], [fs.Node("a", ["x"], replicas=2, batch_size=2), fs.Node("b", ["a"], replicas=3)])
CAUSES: dict[Any, type[Exception]] = {
    _lock: TypeError,
    _closure: pickle.PicklingError,
    Refuses: UnpicklableError,
}
MAKERS = pytest.mark.parametrize("make", CAUSES)


@MAKERS
def test_rows_that_cannot_be_pickled_are_the_error_of_the_call_that_made_them(
    local: TorchBackend, make: Callable[[int], Any]
) -> None:
    def worker(rows: Any) -> Any:
        made = [make(int(row)) if row >= 6 else row for row in rows]
        return {"n": rows, "deep": {"held": made}}

    models = {"a": worker, "b": lambda rows: rows["n"]}
    with pytest.raises(OutputError, match=r"column 'deep\.held'") as told:
        fs.run(fs.compile(TWO, 8), models, {"x": np.arange(8)}, backend=local)
    error = told.value
    assert (error.node, error.replica, error.call, error.samples) == ("a", 1, "a.1.1[6:8]", (6, 8))
    assert type(error.__cause__) is CAUSES[make]


@MAKERS
def test_outputs_that_cannot_be_pickled_are_the_error_of_their_call(
    local: TorchBackend, make: Callable[[int], Any]
) -> None:
    with pytest.raises(OutputError, match=r"the bare column.*Give what can be pickled") as told:
        fs.run(PLAN, {"a": lambda rows: [make(int(row)) for row in rows]}, {"x": np.arange(4)}, backend=local)
    assert told.value.node == "a"
    assert type(told.value.__cause__) is CAUSES[make]


@MAKERS
def test_inputs_that_cannot_be_pickled_are_told_with_source_and_column(
    local: TorchBackend, make: Callable[[int], Any]
) -> None:
    inputs = {"x": {"n": np.arange(4), "held": [make(row) for row in range(4)]}}
    with pytest.raises(InputError, match=r"bad-input.*source 'x'.*column 'held'") as told:
        fs.run(PLAN, {"a": lambda rows: rows["n"]}, inputs, backend=local)
    assert type(told.value.__cause__) is CAUSES[make]


def test_rows_that_stay_on_their_rank_need_not_be_pickled() -> None:
    models = {"a": lambda rows: [_lock(row) for row in rows], "b": lambda rows: np.full(len(rows), 3)}
    backend = TorchBackend(start="local", ranks=1)
    assert fs.run(fs.compile(TWO, 4), models, {"x": np.arange(4)}, backend=backend)["b"].tolist() == [3] * 4


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("where", ["first", "all"])
def test_rows_that_cannot_be_pickled_end_all_ranks_of_one_program_with_that(
    tmp_path: Path, at: int, where: str
) -> None:
    settings = {"kind": "rows", "at": [at], "options": {"outputs_on": where}}
    launched = by_hand(tmp_path, 2, settings, program=Path(__file__).with_name("refusing_program.py"))
    assert sorted(launched.said) == [0, 1], launched.output
    if at == 0 and where == "first":  # they stay there
        assert not any(said.get("errors") for said in launched.said.values())
        return
    for said in launched.said.values():
        assert said["errors"][0][1] == "OutputError"
        assert "node 'a', replica " in said["errors"][0][2]
        assert "cannot pickle" in said["errors"][0][2]
        assert said["seconds"] < 8.0
