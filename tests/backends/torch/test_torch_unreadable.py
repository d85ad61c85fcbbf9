"""What can be pickled and not be read where it arrives is told as that, with its place and its cause."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flowsched_torch import TorchBackend

import flowsched as fs
from flowsched.errors import BackendError, OutputError

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
