"""Every kind of column goes through cutting, joining and repeating unchanged."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

import flowsched as fs
from flowsched.batch import take
from flowsched.errors import OutputError
from tests.comparing import assert_same
from tests.conformance import row_workers as rows
from tests.conformance.conftest import RunGraph

ROWS = 23
NUMBERS = np.random.default_rng(0).integers(0, 200, (ROWS, 3))
NUMPY_DTYPES = [
    "?",
    "i1",
    "u1",
    "i2",
    ">i4",
    "i8",
    "u8",
    "f2",
    "f4",
    "f8",
    ">f8",
    "c8",
    "c16",
    "U5",
    "S3",
    "O",
]
TORCH_DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
]
TIMES = np.datetime64("2026-01-01T00:00:00", "ns") + np.arange(ROWS).astype("timedelta64[ns]")

COLUMNS: dict[str, Any] = {
    **{f"numpy {dtype}": (NUMBERS % 7).astype(dtype) for dtype in NUMPY_DTYPES},
    "numpy datetimes": TIMES,
    "numpy durations": TIMES - TIMES[0],
    "numpy with bits in its nans": (np.arange(ROWS, dtype=np.uint64) + 0x7FF8000000000001).view(np.float64),
    "numpy of one axis": NUMBERS[:, 0],
    "numpy of four axes": NUMBERS.reshape(ROWS, 3, 1, 1),
    "numpy with a stride": np.asfortranarray(NUMBERS)[:, ::2],
    "numpy of trailing size zero": np.zeros((ROWS, 0), np.float32),
    "numpy records": np.array([(i, i / 3) for i in range(ROWS)], dtype=[("id", "i4"), ("score", "f8")]),
    **{
        f"torch {dtype}".replace("torch.", ""): torch.from_numpy(NUMBERS % 7).to(dtype)
        for dtype in TORCH_DTYPES
    },
    "torch of one axis": torch.arange(ROWS),
    "torch transposed": torch.from_numpy(NUMBERS.T.copy()).T,
    "torch of trailing size zero": torch.zeros((ROWS, 2, 0), dtype=torch.bfloat16),
    "list of texts": [f"prompt {i}" for i in range(ROWS)],
    "list of nothing": [None] * ROWS,
    "ragged list of lists": [list(range(i % 4)) for i in range(ROWS)],
    "ragged list of arrays": [np.arange(i % 4, dtype=np.float32) for i in range(ROWS)],
    "ragged list of tensors": [torch.arange(i % 4) for i in range(ROWS)],
    "list of dicts and tuples": [{"turn": i, "said": ("yes", i)} for i in range(ROWS)],
    "a dict": {"ids": NUMBERS, "text": ["a"] * ROWS, "score": torch.rand(ROWS, generator=torch.Generator())},
    "nested dicts": {"answer": {"ids": NUMBERS, "meta": {"who": ["x"] * ROWS}}, "mask": NUMBERS > 90},
    "a dict with a None": {"ids": NUMBERS, "image": None, "more": {"audio": None}},
    "a dict with an empty dict": {"ids": NUMBERS, "extras": {}},
    "a dict whose keys are no identifiers": {"model.layers.0": NUMBERS, "a key": NUMBERS[:, 0]},
}
each_column = pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)


def _passing(*cuts: tuple[int, int | None]) -> fs.Graph:
    names = ["x", *(f"pass{at}" for at in range(len(cuts)))]
    nodes = [
        fs.Node(name, [names[at]], replicas=replicas, batch_size=size)
        for at, (name, (replicas, size)) in enumerate(zip(names[1:], cuts, strict=True))
    ]
    return fs.Graph("passing", ["x"], nodes)


@each_column
def test_a_column_survives_being_cut_and_joined_in_several_ways(run_graph: RunGraph, column: Any) -> None:
    graph = _passing((3, 2), (2, 5), (1, None), (4, 3))
    models = {node.name: rows.pass_on for node in graph}
    assert_same(run_graph(graph, models, {"x": column})["pass3"], column)


@each_column
def test_a_column_survives_being_repeated_for_each_answer(run_graph: RunGraph, column: Any) -> None:
    graph = fs.Graph(
        "repeating",
        sources=["x", "ids"],
        nodes=[
            fs.Node("expand", ["ids"], replicas=2, batch_size=2, expand=3),
            fs.Node("both", ["expand", "x"], replicas=3, batch_size=4),
        ],
    )
    models = {"expand": partial(rows.repeat, times=3), "both": rows.join}
    out = run_graph(graph, models, {"x": column, "ids": np.arange(ROWS)})["both"]["input1"]
    for row in range(ROWS * 3):
        assert_same(take(out, row, row + 1), take(column, row // 3, row // 3 + 1))


@each_column
def test_a_column_of_one_row_is_no_special_case(run_graph: RunGraph, column: Any) -> None:
    graph = _passing((3, 2), (1, None))
    one = take(column, 4, 5)
    assert_same(run_graph(graph, dict.fromkeys(["pass0", "pass1"], rows.pass_on), {"x": one})["pass1"], one)


def test_texts_of_different_widths_meet_without_loss(run_graph: RunGraph) -> None:
    texts = np.array(["a", "bcd", "ef", "ghijkl"] * 4)
    graph = _passing((2, 3), (3, 2))
    models = {"pass0": _narrow, "pass1": rows.pass_on}
    assert_same(run_graph(graph, models, {"x": texts})["pass1"], texts)


def _narrow(texts: Any) -> Any:
    return np.array(texts.tolist())


def test_a_worker_may_return_nothing(run_graph: RunGraph) -> None:
    graph = fs.Graph(
        "training",
        sources=["x"],
        nodes=[
            fs.Node("train", ["x"], replicas=2, batch_size=3),
            fs.Node("next", ["train", "x"], replicas=3, batch_size=2),
        ],
        outputs=["train", "next"],
    )
    out = run_graph(graph, {"train": rows.return_none, "next": _second}, {"x": np.arange(10)})
    assert out["train"] is None
    assert_same(out["next"], np.arange(10))


def _second(nothing: Any, numbers: Any) -> Any:
    assert nothing is None
    return numbers


def test_a_worker_may_return_an_empty_dict(run_graph: RunGraph) -> None:
    out = run_graph(_passing((2, 3)), {"pass0": _empty}, {"x": np.arange(10)})
    assert out["pass0"] == {}


def _empty(_: Any) -> Any:
    return {}


def test_rows_of_different_widths_meet_where_padding_is_declared(run_graph: RunGraph) -> None:
    widths = np.array([3, 1, 2, 5])
    graph = _passing((4, 1), (1, None))
    for node in ("pass0", "pass1"):
        models = {"pass0": rows.Padded, "pass1": rows.pass_on}
        out = run_graph(fs.Graph("padded", ["x"], graph.nodes, [node]), models, {"x": widths})[node]
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


def test_lengths_are_there_for_readers_also_where_nothing_was_padded(run_graph: RunGraph) -> None:
    out = run_graph(
        _passing((1, None), (3, 1)), {"pass0": rows.Padded, "pass1": rows.pass_on}, {"x": np.full(4, 2)}
    )
    assert_same(out["pass1"]["width"], np.full(4, 2))


def test_rows_of_different_widths_cannot_become_one_output_without_padding(run_graph: RunGraph) -> None:
    with pytest.raises(OutputError) as caught:
        run_graph(_passing((2, 1)), {"pass0": rows.undeclared}, {"x": np.array([7, 9])})
    message = str(caught.value)
    assert "(7,)" in message
    assert "(9,)" in message
    assert "@pads(" in message
    assert caught.value.node == "pass0"


def test_rows_of_different_widths_cannot_be_read_as_one_batch_without_padding(run_graph: RunGraph) -> None:
    with pytest.raises(OutputError) as caught:
        run_graph(
            _passing((2, 1), (1, None)),
            {"pass0": rows.undeclared, "pass1": rows.pass_on},
            {"x": np.array([7, 9])},
        )
    message = str(caught.value)
    assert "(7,)" in message
    assert "(9,)" in message
    assert "@pads(" in message
    assert "pass0.0.0[0:1]" in message
    assert "pass0.1.0[1:2]" in message
    assert (caught.value.node, caught.value.samples) == ("pass1", (0, 2))


def test_rows_of_different_widths_are_fine_where_they_never_meet(run_graph: RunGraph) -> None:
    graph = fs.Graph(
        "apart", ["x"], [fs.Node("a", ["x"], replicas=2, batch_size=1), fs.Node("b", ["a"], batch_size=1)]
    )
    out = run_graph(graph, {"a": rows.undeclared, "b": _width}, {"x": np.array([7, 9])})
    assert out["b"].tolist() == [7, 9]


def _width(batch: Any) -> Any:
    return np.full(len(batch), batch.shape[1])
