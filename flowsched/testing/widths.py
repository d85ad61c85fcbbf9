"""Rows of different widths meet where padding is declared, and are refused with both widths where it is not."""

from __future__ import annotations

import numpy as np
import pytest

import flowsched as fs
from flowsched.errors import OutputError
from flowsched.testing.base import Suite
from flowsched.testing.columns import passing
from flowsched.testing.comparing import assert_same
from flowsched.testing.workers import rows


class WidthTests(Suite):
    """What the calls of one node made may differ in the trailing axes."""

    def test_texts_of_different_widths_meet_without_loss(self) -> None:
        texts = np.array(["a", "bcd", "ef", "ghijkl"] * 4)
        models = {"pass0": rows.narrow, "pass1": rows.pass_on}
        assert_same(self.run(passing((2, 3), (3, 2)), models, {"x": texts})["pass1"], texts)

    @pytest.mark.parametrize("node", ["pass0", "pass1"])
    def test_rows_of_different_widths_meet_where_padding_is_declared(self, node: str) -> None:
        widths = np.array([3, 1, 2, 5])
        models = {"pass0": rows.Padded, "pass1": rows.pass_on}
        graph = fs.Graph("padded", ["x"], passing((4, 1), (1, None)).nodes, [node])
        out = self.run(graph, models, {"x": widths})[node]
        assert out["ids"].tolist() == [
            [3, 3, 3, -1, -1],
            [1, -1, -1, -1, -1],
            [2, 2, -1, -1, -1],
            [5, 5, 5, 5, 5],
        ]
        assert out["mask"].astype(int).tolist() == [
            [0, 0, 1, 1, 1],
            [0, 0, 0, 0, 1],
            [0, 0, 0, 1, 1],
            [1, 1, 1, 1, 1],
        ]
        assert_same(out["width"], widths)

    def test_lengths_are_there_for_readers_also_where_nothing_was_padded(self) -> None:
        models = {"pass0": rows.Padded, "pass1": rows.pass_on}
        out = self.run(passing((1, None), (3, 1)), models, {"x": np.full(4, 2)})
        assert_same(out["pass1"]["width"], np.full(4, 2))

    def test_rows_of_different_widths_cannot_become_one_output_without_padding(self) -> None:
        with pytest.raises(OutputError) as caught:
            self.run(passing((2, 1)), {"pass0": rows.undeclared}, {"x": np.array([7, 9])})
        message = str(caught.value)
        for part in ("(7,)", "(9,)", "@pads("):
            assert part in message
        assert caught.value.node == "pass0"

    def test_rows_of_different_widths_cannot_be_read_as_one_batch_without_padding(self) -> None:
        models = {"pass0": rows.undeclared, "pass1": rows.pass_on}
        with pytest.raises(OutputError) as caught:
            self.run(passing((2, 1), (1, None)), models, {"x": np.array([7, 9])})
        message = str(caught.value)
        for part in ("(7,)", "(9,)", "@pads(", "pass0.0.0[0:1]", "pass0.1.0[1:2]"):
            assert part in message
        assert (caught.value.node, caught.value.samples) == ("pass1", (0, 2))

    def test_rows_of_different_widths_are_fine_where_they_never_meet(self) -> None:
        graph = fs.Graph(
            "apart",
            sources=["x"],
            nodes=[fs.Node("a", ["x"], replicas=2, batch_size=1), fs.Node("b", ["a"], batch_size=1)],
        )
        out = self.run(graph, {"a": rows.undeclared, "b": rows.width}, {"x": np.array([7, 9])})
        assert out["b"].tolist() == [7, 9]
