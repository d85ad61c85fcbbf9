"""Things given in the wrong place are told with the right one."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowsched as fs
from flowsched.errors import BackendError, BindingError, CheckError, InputError
from flowsched.plan import Table

GRAPH: Any = fs.Graph("g", ["x"], [fs.Node("a", ["x"])])
PLAN: Any = fs.compile(GRAPH, 4)
INPUTS = {"x": np.arange(4)}


def same(batch: Any) -> Any:
    return batch


async def wait(batch: Any) -> Any:
    return batch


class Waits:
    async def __call__(self, batch: Any) -> Any:
        return batch


class Model:
    def __init__(self, temperature: float = 1.0) -> None:
        self.temperature = temperature

    def __call__(self, batch: Any) -> Any:
        return batch


def test_a_graph_where_a_plan_must_be_is_told_how_to_make_one() -> None:
    with pytest.raises(InputError, match=r"a Graph is no Plan\. Give a plan, e\.g\. fs\.compile"):
        fs.run(GRAPH, {"a": same}, INPUTS)
    with pytest.raises(CheckError, match=r"a Graph is no plan\. Give fs\.compile"):
        fs.check(GRAPH)
    with fs.start(GRAPH, {"a": same}) as session, pytest.raises(InputError, match="is no Plan"):
        session.run_plan(GRAPH, INPUTS)


def test_a_plan_where_a_graph_must_be_is_told_where_it_has_one() -> None:
    with pytest.raises(InputError, match=r"a Plan is no Graph\. Give the graph itself, e\.g\. plan\.graph"):
        fs.start(PLAN, {"a": same})


@pytest.mark.parametrize(("name", "meant"), [("sed", "seed"), ("max_inflight", "max_in_flight")])
def test_a_misspelt_option_is_told_with_the_one_that_was_meant(name: str, meant: str) -> None:
    options: Any = {name: 3}
    with pytest.raises(BackendError, match=f"has no option {name!r}. Did you mean {meant!r}"):
        fs.run(PLAN, {"a": same}, INPUTS, **options)


@pytest.mark.parametrize("model", [wait, Waits, partial(wait)])
def test_async_workers_are_refused_before_anything_starts(model: Any) -> None:
    with pytest.raises(BindingError, match=r"async-model.*asyncio\.run"):
        fs.run(PLAN, {"a": model}, INPUTS)


def test_arguments_that_a_class_does_not_take_are_refused_before_it_is_built() -> None:
    misspelt: Any = {"tmp": 1}
    with pytest.raises(BindingError, match=r"Model\(temperature: .*takes no tmp=1"):
        fs.run(PLAN, {"a": partial(Model, **misspelt)}, INPUTS)


@pytest.mark.parametrize("devices", [{"a": 5}, {"a": {"cuda:0"}}, {"a": np.array(["cuda:0"])}, {"a": []}])
def test_the_devices_of_a_node_are_a_list(devices: Any) -> None:
    with pytest.raises(BackendError, match="Give a list of at least one device"):
        fs.run(PLAN, {"a": same}, INPUTS, devices=devices)


def test_an_observer_that_cannot_be_called_is_refused_before_anything_starts() -> None:
    observer: Any = 5
    with pytest.raises(InputError, match=r"observer.*5 cannot be called"):
        fs.run(PLAN, {"a": same}, INPUTS, observer=observer)


def test_a_plan_that_would_wait_for_itself_is_refused_not_run(tmp_path: Path) -> None:
    nodes = [fs.Node("a", ["x"], batch_size=1), fs.Node("b", ["a"], batch_size=1, replicas_of="a")]
    graph = fs.Graph("g", ["x"], nodes)
    plan = fs.compile(graph, 2)
    columns = dict(plan.table.columns()) | {"position": np.array([2, 3, 0, 1])}
    broken = fs.Plan(graph, 2, Table(**columns))
    broken.save(tmp_path / "broken.npz")
    loaded = fs.load_plan(tmp_path / "broken.npz", graph=graph)
    with pytest.raises(CheckError, match="no-deadlock"):
        fs.run(loaded, {"a": same}, {"x": np.arange(2)})
    with fs.start(graph, {"a": same}) as session, pytest.raises(CheckError, match="no-deadlock"):
        session.run_plan(loaded, {"x": np.arange(2)})


@pytest.mark.parametrize("devices", [["cuda:0", "cuda:1"], 3, "cuda:0"])
def test_devices_are_given_by_node(devices: Any) -> None:
    with pytest.raises(BackendError, match=r"Give the devices of each node, e\.g\. devices=\{'policy'"):
        fs.run(PLAN, {"a": same}, INPUTS, devices=devices)
