"""What a worker can spoil for others, and what it is told when it tries or forgets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowsched as fs
from flowsched.errors import WorkerError
from flowsched.testing.base import Suite
from flowsched.testing.workers import spoiling

# first and second read the same rows; second reads them after first is done, by way of its output
_SIBLINGS = fs.Graph(
    "siblings",
    sources=["x"],
    nodes=[
        fs.Node("make", inputs=["x"]),
        fs.Node("first", inputs=["make"]),
        fs.Node("second", inputs=["make", "first"]),
    ],
    outputs=["first", "second"],
)


def _data() -> dict[str, Any]:
    return {"x": {"n": np.arange(6), "text": list("abcdef")}}


class SharingTests(Suite):
    """Batches that several nodes read."""

    def test_writing_into_an_array_that_others_read_is_refused_with_the_mend(self) -> None:
        models = {
            "make": spoiling.add_one,
            "first": spoiling.write_into_an_array,
            "second": spoiling.give_back_first,
        }
        with pytest.raises(WorkerError, match="copy an array before writing into it") as caught:
            self.run(_SIBLINGS, models, _data())
        assert caught.value.node == "first"
        assert isinstance(caught.value.__cause__, ValueError)

    @pytest.mark.parametrize("spoil", [spoiling.write_into_a_list, spoiling.write_into_the_dict])
    def test_lists_and_dicts_are_each_readers_own(self, spoil: Any) -> None:
        given = _data()
        models = {"make": spoiling.give_back, "first": spoil, "second": spoiling.give_back_first}
        out = self.run(_SIBLINGS, models, given)
        assert out["second"]["n"].tolist() == list(range(6))
        assert out["second"]["text"] == list("abcdef")
        assert given["x"]["text"] == list("abcdef")
        assert set(given["x"]) == {"n", "text"}

    def test_a_reader_that_fails_on_none_is_told_who_may_have_forgotten_to_return(self) -> None:
        models = {
            "make": spoiling.forget_to_return,
            "first": spoiling.add_one,
            "second": spoiling.give_back_first,
        }
        with pytest.raises(WorkerError, match="does the worker of 'make' forget to return") as caught:
            self.run(_SIBLINGS, models, _data())
        assert caught.value.node == "first"
