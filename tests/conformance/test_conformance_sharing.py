"""What a worker can spoil for others, and what it is told when it tries or forgets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowsched as fs
from flowsched.errors import OutputError, WorkerError
from tests.conformance.conftest import RunGraph

SIBLINGS = fs.Graph(
    "siblings",
    sources=["x"],
    nodes=[
        fs.Node("make", inputs=["x"]),
        fs.Node("first", inputs=["make"], after=[]),
        fs.Node("second", inputs=["make"], after=["first"]),
    ],
    outputs=["first", "second"],
)


def add_one(batch: Any) -> Any:
    return {"n": batch["n"] + 1, "text": list(batch["text"])}


def write_into_an_array(batch: Any) -> Any:
    batch["n"] *= 0
    return batch


def write_into_a_list(batch: Any) -> Any:
    batch["text"].reverse()
    return batch


def write_into_the_dict(batch: Any) -> Any:
    batch["extra"] = batch.pop("n")
    return batch


def give_back(batch: Any) -> Any:
    return batch


def data() -> dict[str, Any]:
    return {"x": {"n": np.arange(6), "text": list("abcdef")}}


def test_writing_into_an_array_that_others_read_is_refused_with_the_mend(run_graph: RunGraph) -> None:
    models = {"make": add_one, "first": write_into_an_array, "second": give_back}
    with pytest.raises(WorkerError, match="copy an array before writing into it") as caught:
        run_graph(SIBLINGS, models, data())
    assert caught.value.node == "first"
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize("spoil", [write_into_a_list, write_into_the_dict])
def test_lists_and_dicts_are_each_readers_own(run_graph: RunGraph, spoil: Any) -> None:
    given = data()
    out = run_graph(SIBLINGS, {"make": give_back, "first": spoil, "second": give_back}, given)
    assert out["second"]["n"].tolist() == list(range(6))
    assert out["second"]["text"] == list("abcdef")
    assert given["x"]["text"] == list("abcdef")
    assert set(given["x"]) == {"n", "text"}


def forget_to_return(batch: Any) -> Any:
    batch["n"] + 1


def test_a_reader_that_fails_on_none_is_told_who_may_have_forgotten_to_return(run_graph: RunGraph) -> None:
    models = {"make": forget_to_return, "first": add_one, "second": give_back}
    with pytest.raises(WorkerError, match="does the worker of 'make' forget to return") as caught:
        run_graph(SIBLINGS, models, data())
    assert caught.value.node == "first"


def answers_of_all_first(batch: Any) -> Any:
    return batch[:1]


@pytest.mark.parametrize(
    ("node", "mend"),
    [
        (fs.Node("a", inputs=["x"], expand=4), "Return 24 rows: the 4 of each row next to each other"),
        (fs.Node("a", inputs=["x"], collapse=3), "Return 2 rows, one for every 3 read"),
        (fs.Node("a", inputs=["x"]), "Return 6 rows, one for each row read, or declare expand="),
    ],
)
def test_a_wrong_number_of_rows_is_told_with_the_right_one(
    run_graph: RunGraph, node: fs.Node, mend: str
) -> None:
    with pytest.raises(OutputError, match=mend):
        run_graph(fs.Graph("g", ["x"], [node]), {"a": answers_of_all_first}, {"x": np.arange(6)})


def draw_made(batch: Any, context: fs.Context) -> Any:
    assert len(context.seeds) == len(batch)
    assert context.made_stop - context.made_start == len(context.made_seeds) == 4 * len(batch)
    return context.made_seeds


def test_each_row_made_has_a_seed_that_depends_on_no_replicas_or_batch_sizes(run_graph: RunGraph) -> None:
    def drawn(**sizes: Any) -> Any:
        graph = fs.Graph("g", ["x"], [fs.Node("a", inputs=["x"], expand=4, **sizes)])
        return run_graph(graph, {"a": draw_made}, {"x": np.arange(10)})["a"]

    seeds = drawn(replicas=3, batch_size=2)
    assert len(np.unique(seeds)) == 40
    np.testing.assert_array_equal(seeds, drawn(replicas=1))
