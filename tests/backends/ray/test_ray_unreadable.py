"""Rows that cannot be read where they arrive are told with their place and what their reading raised."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flowsched_ray import RayBackend

import flowsched as fs
from flowsched.errors import OutputError
from tests.backends.ray import workers

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("one_machine")]

CHAIN = fs.Graph("g", ["x"], [fs.Node("a", ["x"]), fs.Node("b", ["a"], batch_size=2)])
PLAN = fs.compile(CHAIN, 4)
KINDS = pytest.mark.parametrize("kind", [RuntimeError, KeyError])


@pytest.fixture(scope="module", params=[False, True], ids=["tasks", "compiled"])
def backend(request: pytest.FixtureRequest) -> Any:
    made = RayBackend(compiled=request.param, reuse=True)
    yield made
    made.close()


def _refused(backend: RayBackend, models: Any, inputs: Any) -> OutputError:
    with pytest.raises(OutputError) as told:
        fs.run(PLAN, models, {"x": inputs}, backend=backend)
    return told.value


@KINDS
def test_an_input_that_the_call_which_reads_it_cannot_read(
    backend: RayBackend, kind: type[Exception]
) -> None:
    rows = [workers.Unreadable(kind) for _ in range(4)]
    told = _refused(backend, {"a": workers.pass_on, "b": workers.pass_on}, rows)
    assert (told.node, told.replica, told.call, told.samples) == ("a", 0, "a.0.0[0:4]", (0, 4))
    assert "what it reads cannot be brought to its process" in str(told)
    assert "no such device" in str(told)
    assert isinstance(told.__cause__, kind)


@KINDS
def test_rows_of_another_call_that_the_call_which_reads_them_cannot_read(
    backend: RayBackend, kind: type[Exception]
) -> None:
    models = {"a": workers.MakesUnreadable(kind, bad=3), "b": workers.count_rows}
    told = _refused(backend, models, np.arange(4))
    assert (told.node, told.replica, told.call, told.samples) == ("b", 0, "b.0.1[2:4]", (2, 4))
    assert isinstance(told.__cause__, kind)


@KINDS
def test_an_output_that_the_driver_cannot_read(backend: RayBackend, kind: type[Exception]) -> None:
    models = {"a": workers.pass_on, "b": workers.MakesUnreadable(kind, bad=1)}
    told = _refused(backend, models, np.arange(4))
    assert (told.node, told.replica, told.call, told.samples) == ("b", 0, "b.0.0[0:2]", (0, 2))
    assert "its output cannot be brought home" in str(told)
    assert isinstance(told.__cause__, kind)


def test_a_node_that_returns_nothing_is_read_as_nothing_in_every_step(backend: RayBackend) -> None:
    models = {"a": workers.return_nothing, "b": workers.say_whether_nothing}
    with fs.start(CHAIN, models, backend=backend) as session:
        for _ in range(3):
            assert session.run({"x": np.arange(4)})["b"] == ["nothing"] * 4
