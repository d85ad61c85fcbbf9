"""What is no batch of the right rows and columns is refused, with its place and what would be right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowsched as fs
from flowsched.backend import Feature
from flowsched.errors import OutputError
from flowsched.testing.base import Suite, needs
from flowsched.testing.results import one_node
from flowsched.testing.workers import odd_outputs as odd
from flowsched.testing.workers import rows


class OddOutputTests(Suite):
    """Workers that return something else than they must."""

    @pytest.mark.parametrize(
        ("worker", "said"),
        [
            (odd.one_row_more, "it returned 5 rows, not 4: it read 4 rows"),
            (odd.no_rows, "it returned 0 rows, not 4: it read 4 rows"),
            (odd.one_number, "one per row"),
            (odd.no_axes, "0 axes"),
            (odd.no_axes_tensor, "0 axes"),
            (odd.some_text, "a str"),
            (odd.a_tuple, "a tuple"),
            (odd.a_nested_tuple, "column 'scores.all' is a tuple"),
            (odd.a_generator, "a generator"),
            (odd.unequal_columns, "'long' has 4, 'short' has 3"),
            (odd.keep_even, "'reward'"),
            (odd.numbered_key, "the key 1 (int)"),
        ],
    )
    def test_what_is_no_batch_of_as_many_rows_is_refused_with_its_place(
        self, worker: Callable[..., Any], said: str
    ) -> None:
        if worker is odd.no_axes_tensor:
            pytest.importorskip("torch", reason="torch is missing, so its tensors are not tried")
        with pytest.raises(OutputError) as caught:
            self.run(one_node(1, 4), {"a": worker}, {"x": np.arange(8)})
        error = caught.value
        assert said in str(error)
        assert (error.replica, error.call, error.samples) == (0, "a.0.0[0:4]", (0, 4))
        assert "samples 0, 1, 2, 3" in str(error)

    @pytest.mark.parametrize(
        ("worker", "said"),
        [
            (odd.other_keys_later, ["column 'early'", "column 'late'"]),
            (odd.other_dtype_later, ["int64", "float32"]),
            (odd.other_kind_later, ["a list", "numpy array"]),
            (odd.none_later, ["None", "numpy array"]),
        ],
    )
    def test_columns_that_change_between_calls_of_a_node_are_refused(
        self, worker: Callable[..., Any], said: list[str]
    ) -> None:
        with pytest.raises(OutputError, match="its output differs from that of a") as caught:
            self.run(one_node(2, 2), {"a": worker}, {"x": np.arange(8)})
        for part in said:
            assert part in str(caught.value)

    def test_columns_that_change_between_two_replicas_are_refused(self) -> None:
        with pytest.raises(OutputError, match="its output differs from that of a"):
            self.run(one_node(2, 4), {"a": odd.other_dtype_later}, {"x": np.arange(8)})

    def test_a_masked_array_is_refused_also_where_plain_ones_came_before(self) -> None:
        with pytest.raises(OutputError, match="MaskedArray"):
            self.run(one_node(1, 2), {"a": odd.masked_later}, {"x": np.arange(8)})

    @needs(Feature.ROWS)
    @pytest.mark.parametrize(
        ("own", "said"),
        [
            ({"expand": 3}, "it returned 4 rows, not 12: it read 4 rows and expands each to 3"),
            ({"collapse": 2}, "it returned 4 rows, not 2: it read 4 rows and collapses 2 into one"),
        ],
    )
    def test_rows_are_counted_after_expanding_and_collapsing(self, own: dict[str, int], said: str) -> None:
        with pytest.raises(OutputError, match=said):
            self.run(one_node(1, None, **own), {"a": rows.pass_on}, {"x": np.arange(4)})

    @needs(Feature.ROWS)
    @pytest.mark.parametrize(
        ("own", "mend"),
        [
            ({"expand": 4}, "Return 24 rows: the 4 of each row next to each other"),
            ({"collapse": 3}, "Return 2 rows, one for every 3 read"),
            ({}, "Return 6 rows, one for each row read, or declare expand="),
        ],
    )
    def test_a_wrong_number_of_rows_is_told_with_the_right_one(self, own: dict[str, int], mend: str) -> None:
        graph = fs.Graph("g", ["x"], [fs.Node("a", inputs=["x"], **own)])  # type: ignore[arg-type]
        with pytest.raises(OutputError, match=mend):
            self.run(graph, {"a": odd.answers_of_all_first}, {"x": np.arange(6)})
