"""Whatever the graph and however it is cut, threads return what a plain loop over samples returns, bit for bit."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from numpy.typing import NDArray

import flowsched as fs
from flowsched.graph.rows import find_rows
from flowsched.reference import run_reference
from flowsched.testing import assert_same
from tests.strategies import Workload, graphs

Digests = NDArray[np.uint64]


def _digest_rows(batch: Any, rows: int) -> Digests:
    """Return (rows,) one number for each row, which every bit of every column of the row goes into."""
    if batch is None:
        return np.zeros(rows, np.uint64)
    if isinstance(batch, dict):
        total = np.zeros(rows, np.uint64)
        for name in sorted(batch):
            total = total * np.uint64(31) + _digest_rows(batch[name], rows)
        return total
    if isinstance(batch, list):
        return np.array([zlib.crc32(repr(element).encode()) for element in batch], np.uint64)
    if isinstance(batch, torch.Tensor):
        batch = batch.contiguous().view(torch.uint8).numpy()
    flat = np.ascontiguousarray(batch).view(np.uint8).reshape(rows, -1).astype(np.uint64)
    return flat @ (np.arange(flat.shape[1], dtype=np.uint64) * np.uint64(2654435761) + np.uint64(1))


def _bare(found: Digests) -> Any:
    return found


def _floats(found: Digests) -> Any:
    return np.stack([found / 3, np.sqrt(found.astype(np.float64))], axis=1).astype(np.float32)


def _tensors(found: Digests) -> Any:
    numbers = torch.from_numpy((found % np.uint64(1000)).astype(np.int64))
    return {"half": (numbers / 7).to(torch.bfloat16)[:, None], "even": numbers % 2 == 0, "wide": numbers}


def _texts(found: Digests) -> Any:
    return [f"answer {number % 997}" for number in found.tolist()]


def _ragged(found: Digests) -> Any:
    return {"tokens": [list(range(number % 5)) for number in found.tolist()], "image": None}


def _nested(found: Digests) -> Any:
    days = np.datetime64("2026-01-01") + (found % np.uint64(5000)).astype("timedelta64[D]")
    return {
        "answer": {"ids": _floats(found), "when": days},
        "text": np.array(_texts(found)),
        "none": np.zeros((len(found), 0)),
    }


def _nothing(_: Digests) -> Any:
    return None


KINDS = (_bare, _floats, _tensors, _texts, _ragged, _nested, _nothing)


@dataclass(frozen=True)
class Shape:
    """What a node does with its rows: collapse, expand, and the columns that it makes of them."""

    collapse: int
    expand: int
    kind: int


class Mix:
    """A worker of any inputs: each row it makes depends on all bits of the rows and seeds that it comes from."""

    def __init__(self, shapes: Mapping[str, Shape]) -> None:
        self.shapes = shapes

    def __call__(self, *batches: Any, context: fs.Context) -> Any:
        shape, rows = self.shapes[context.node], context.stop - context.start
        found = context.seeds + context.sample_ids.astype(np.uint64)
        for batch in batches:
            found = found * np.uint64(1_000_003) + _digest_rows(batch, rows)
        weights = np.arange(1, shape.collapse + 1, dtype=np.uint64)
        parents = (found.reshape(-1, shape.collapse) * weights).sum(axis=1, dtype=np.uint64)
        children = np.tile(np.arange(shape.expand, dtype=np.uint64), len(parents))
        return KINDS[shape.kind](np.repeat(parents, shape.expand) + children)


@st.composite
def _cuts(draw: DrawFn, graph: fs.Graph) -> fs.Graph:
    """The same graph with other replicas and batch sizes."""
    nodes = []
    for node in graph:
        row = {item.name: getattr(node, item.name) for item in fields(node)}
        row["batch_size"] = draw(st.none() | st.integers(node.unit, max(node.unit, 100)))
        if node.replicas_of is None:
            row["replicas"] = draw(st.integers(1, 40))
        nodes.append(fs.Node(**row))
    return fs.Graph(graph.name, graph.sources, nodes, graph.outputs)


def _inputs(graph: fs.Graph, samples: int) -> dict[str, Any]:
    numbers = np.arange(samples, dtype=np.uint64) * np.uint64(7919)
    return {name: KINDS[at % 6](numbers + np.uint64(at)) for at, name in enumerate(graph.sources)}


def _models(graph: fs.Graph, kinds: list[int]) -> dict[str, Any]:
    shapes = {
        node.name: Shape(node.collapse, node.expand, kind % len(KINDS))
        for node, kind in zip(graph, kinds, strict=False)
    }
    return {node.name: partial(Mix, shapes) for node in graph.owners()}


def _check(work: Workload, data: st.DataObject) -> None:
    graph, samples = work
    inputs = _inputs(graph, samples)
    models = _models(graph, data.draw(st.lists(st.integers(0, 6), min_size=12, max_size=12), label="kinds"))
    seed = data.draw(st.integers(0, 3), label="seed")
    expected = run_reference(graph, models, inputs, seed=seed)
    for cut in (graph, data.draw(_cuts(graph), label="the same graph, cut otherwise")):
        limit = data.draw(st.sampled_from([None, 1, 2, 7]), label="max_in_flight")
        out = fs.run(fs.compile(cut, samples), models, inputs, seed=seed, max_in_flight=limit)
        assert_same(dict(out), expected)


_SETTINGS: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
}


@settings(max_examples=60, **_SETTINGS)
@given(graphs(max_samples=60, max_rows=240), st.data())
def test_any_graph_gives_what_the_reference_gives_however_it_is_cut(
    work: Workload, data: st.DataObject
) -> None:
    _check(work, data)


@settings(max_examples=5, **_SETTINGS)
@given(graphs(max_nodes=4, max_samples=60, max_rows=480), st.integers(25, 83), st.data())
def test_large_steps_give_what_the_reference_gives(work: Workload, sixties: int, data: st.DataObject) -> None:
    samples = sixties * 60
    rows, problems = find_rows(work.graph, samples)
    assume(not problems and sum(int(node.read * samples) for node in rows.values()) < 30_000)
    _check(Workload(work.graph, samples), data)


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(max_examples=60, **_SETTINGS)
@given(graphs(max_rows=3_000, max_samples=500), st.data())
def test_many_more_graphs_give_what_the_reference_gives(work: Workload, data: st.DataObject) -> None:
    _check(work, data)
