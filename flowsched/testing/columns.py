"""Every kind of column goes through cutting, joining and repeating unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest

import flowsched as fs
from flowsched.backend import Feature
from flowsched.batch import take
from flowsched.testing.base import Suite, needs
from flowsched.testing.column_data import COLUMNS, ROWS, column_named
from flowsched.testing.comparing import assert_same
from flowsched.testing.kept import KeptSession
from flowsched.testing.workers import rows

each_column = pytest.mark.parametrize("name", COLUMNS)


def passing(*cuts: tuple[int, int | None]) -> fs.Graph:
    """Return a chain of nodes ``pass0``, ``pass1``, ... that are cut as told."""
    names = ["x", *(f"pass{at}" for at in range(len(cuts)))]
    nodes = [
        fs.Node(name, [names[at]], replicas=replicas, batch_size=size)
        for at, (name, (replicas, size)) in enumerate(zip(names[1:], cuts, strict=True))
    ]
    return fs.Graph("passing", ["x"], nodes)


PASSING = passing((3, 2), (2, 5), (1, None), (4, 3))
PASS: Mapping[str, Any] = {node.name: rows.pass_on for node in PASSING}
REPEATING = fs.Graph(
    "repeating",
    sources=["x", "ids"],
    nodes=[
        fs.Node("expand", ["ids"], replicas=2, batch_size=2, expand=3),
        fs.Node("both", ["expand", "x"], replicas=3, batch_size=4),
    ],
)
REPEAT: Mapping[str, Any] = {"expand": partial(rows.repeat, times=3), "both": rows.join}


class ColumnTests(Suite):
    """Columns of numpy, torch, lists and dicts; all of a kind are steps of one session."""

    @each_column
    def test_a_column_survives_being_cut_and_joined_in_several_ways(
        self, kept: KeptSession, name: str
    ) -> None:
        column = column_named(name)
        assert_same(kept.run(PASSING, PASS, {"x": column})["pass3"], column)

    @each_column
    def test_a_column_of_one_row_is_no_special_case(self, kept: KeptSession, name: str) -> None:
        one = take(column_named(name), 4, 5)
        assert_same(kept.run(PASSING, PASS, {"x": one})["pass3"], one)

    @each_column
    def test_a_column_of_no_rows_makes_a_step_of_no_samples(self, kept: KeptSession, name: str) -> None:
        none = take(column_named(name), 0, 0)
        assert kept.run(PASSING, PASS, {"x": none})["pass3"] == []

    @needs(Feature.ROWS)
    @each_column
    def test_a_column_survives_being_repeated_for_each_answer(self, kept: KeptSession, name: str) -> None:
        column = column_named(name)
        out = kept.run(REPEATING, REPEAT, {"x": column, "ids": np.arange(ROWS)})["both"]["input1"]
        for row in range(ROWS * 3):
            assert_same(take(out, row, row + 1), take(column, row // 3, row // 3 + 1))

    def test_a_worker_may_return_nothing(self) -> None:
        graph = fs.Graph(
            "training",
            sources=["x"],
            nodes=[
                fs.Node("train", ["x"], replicas=2, batch_size=3),
                fs.Node("next", ["train", "x"], replicas=3, batch_size=2),
            ],
            outputs=["train", "next"],
        )
        out = self.run(graph, {"train": rows.return_none, "next": rows.second}, {"x": np.arange(10)})
        assert out["train"] is None
        assert_same(out["next"], np.arange(10))

    def test_a_worker_may_return_an_empty_dict(self) -> None:
        out = self.run(passing((2, 3)), {"pass0": rows.empty_dict}, {"x": np.arange(10)})
        assert out["pass0"] == {}
