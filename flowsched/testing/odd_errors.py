"""Exceptions and columns that misbehave when they are looked at keep their place."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import flowsched as fs
from flowsched.errors import BuildError, OutputError, WorkerError
from flowsched.testing.base import Suite
from flowsched.testing.results import one_node
from flowsched.testing.workers import failing, rows


class OddErrorTests(Suite):
    """Failures that are hard to tell."""

    def test_an_exception_that_cannot_be_printed_has_its_place_and_hangs_nothing(self) -> None:
        with pytest.raises(WorkerError, match="UnprintableError") as caught:
            self.run(one_node(2, 2), {"a": failing.raise_unprintable}, {"x": np.arange(8)})
        assert type(caught.value.__cause__) is failing.UnprintableError

    def test_a_constructor_may_raise_an_exception_that_cannot_be_printed(self) -> None:
        models = {"a": partial(failing.FailsToBuild, error=failing.UnprintableError)}
        with pytest.raises(BuildError, match="UnprintableError") as caught:
            self.start(one_node(3, 2), models)
        assert type(caught.value.__cause__) is failing.UnprintableError

    def test_an_exception_that_ends_programs_when_it_is_printed_still_has_its_place(self) -> None:
        said = r"node 'a'.*UnspeakableError: .its text cannot be told"
        with pytest.raises(WorkerError, match=said) as caught:
            self.run(one_node(2, 2), {"a": failing.raise_unspeakable}, {"x": np.arange(8)})
        assert isinstance(caught.value.__cause__, failing.UnspeakableError)
        with pytest.raises(BuildError, match="UnspeakableError"):
            self.run(one_node(2, 2), {"a": failing.BuildsUnspeakably}, {"x": np.arange(8)})

    def test_a_message_of_a_million_characters_is_cut(self) -> None:
        with pytest.raises(WorkerError, match=r"\(1000000 characters\)") as caught:
            self.run(one_node(2, 2), {"a": failing.raise_at_length}, {"x": np.arange(8)})
        assert len(str(caught.value)) < 3_000

    def test_rows_that_no_memory_can_hold_are_told_with_their_place(self) -> None:
        graph = fs.Graph("big", ["x"], [fs.Node("a", ["x"], replicas=2), fs.Node("b", ["a"])])
        with pytest.raises(OutputError, match=r"node '[ab]'.*MemoryError") as caught:
            self.run(graph, {"a": failing.enormous, "b": rows.pass_on}, {"x": np.arange(4)})
        assert isinstance(caught.value.__cause__, MemoryError)

    def test_an_output_that_contains_itself_is_told_with_its_place(self) -> None:
        with pytest.raises(OutputError, match=r"node 'a'.*cannot be looked into: RecursionError"):
            self.run(one_node(2, 2), {"a": failing.endless}, {"x": np.arange(8)})
