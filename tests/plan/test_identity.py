"""A plan is what its hash says: other columns have another hash, and nobody changes a plan once it is made."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import flowsched as fs
from flowsched.plan import Table
from flowsched.plan.table import COLUMN_TYPES, seal


def _plan() -> fs.Plan:
    nodes = [
        fs.Node("policy", inputs=["prompts"], replicas=2, batch_size=4),
        fs.Node("reward", inputs=["policy", "prompts"], replicas=3, batch_size=2),
    ]
    return fs.compile(fs.Graph("ppo", sources=["prompts"], nodes=nodes), samples=16)


def _columns(plan: fs.Plan) -> dict[str, NDArray[Any]]:
    return {name: column.copy() for name, column in plan.table.columns()}


@pytest.mark.parametrize(("one", "next_one"), list(zip(COLUMN_TYPES, list(COLUMN_TYPES)[1:], strict=False)))
def test_the_same_bytes_cut_into_columns_at_another_place_have_another_hash(one: str, next_one: str) -> None:
    plan = _plan()
    columns = _columns(plan)
    split = len(columns[one]) * columns[one].itemsize
    joined = columns[one].tobytes() + columns[next_one].tobytes()
    moved = {
        **columns,
        one: np.frombuffer(joined[: split - 8], COLUMN_TYPES[one]),
        next_one: np.frombuffer(joined[split - 8 :], COLUMN_TYPES[next_one]),
    }
    assert fs.Plan(plan.graph, plan.samples, Table(**moved)).hash != plan.hash


@pytest.mark.parametrize("column", COLUMN_TYPES)
def test_another_number_in_any_column_has_another_hash(column: str) -> None:
    plan = _plan()
    columns = _columns(plan)
    columns[column][-1] += 1
    assert fs.Plan(plan.graph, plan.samples, Table(**columns)).hash != plan.hash


_COPIES: list[Callable[[Any], Any]] = [
    lambda value: pickle.loads(pickle.dumps(value)),
    lambda value: pickle.loads(pickle.dumps(value, protocol=5)),
    copy.copy,
    copy.deepcopy,
    lambda value: value,
]


@pytest.mark.parametrize("copied", _COPIES, ids=["pickle", "pickle 5", "copy", "deepcopy", "itself"])
@pytest.mark.parametrize("looked_at", [False, True])
def test_a_copy_is_the_same_plan_and_no_column_of_it_can_be_written_to(
    copied: Callable[[fs.Plan], fs.Plan], looked_at: bool
) -> None:
    plan = _plan()
    if looked_at:
        _ = plan.hash, plan.rows, plan.call_offsets, plan.feed_offsets
    again = copied(plan)
    assert (again, again.hash, str(again)) == (plan, plan.hash, str(plan))
    _assert_fixed(again)


def test_a_table_that_was_read_from_a_file_cannot_be_written_to(tmp_path: Any) -> None:
    for name in ("plan.json", "plan.npz"):
        _plan().save(tmp_path / name)
        _assert_fixed(fs.load_plan(tmp_path / name))


def _assert_fixed(plan: fs.Plan) -> None:
    derived = [("call_offsets", plan.call_offsets), ("feed_offsets", plan.feed_offsets)]
    for name, column in [*plan.table.columns(), *derived]:
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 7
        memory: Any = column.base if name in COLUMN_TYPES else column
        assert not memory.flags.writeable
    for _, column in plan.table.columns():
        with pytest.raises(ValueError, match="WRITEABLE"):
            column.flags.writeable = True


def _views(column: NDArray[Any]) -> NDArray[Any]:
    shown = column.view()
    shown.flags.writeable = False
    return shown


@pytest.mark.parametrize(
    "given",
    [lambda column: column, lambda column: column[:], _views],
    ids=["array", "slice", "read-only view"],
)
def test_what_a_caller_writes_to_its_arrays_later_does_not_reach_the_table(
    given: Callable[[NDArray[Any]], NDArray[Any]],
) -> None:
    plan = _plan()
    columns = _columns(plan)
    table = Table(**{name: given(column) for name, column in columns.items()})
    for column in columns.values():
        column[:] = 0
    assert fs.Plan(plan.graph, plan.samples, table) == plan


def test_a_sealed_array_and_the_columns_of_another_table_are_kept_without_a_copy() -> None:
    columns = _columns(_plan())
    whole = columns["start"]
    table = Table(**{**columns, "start": seal(whole[:])})
    assert np.shares_memory(table.start, whole)
    assert not whole.flags.writeable
    assert np.shares_memory(Table(**dict(table.columns())).start, whole)
    assert not np.shares_memory(table.stop, columns["stop"])
