"""A context is given to the workers and constructors that have a parameter of that name left."""

# ruff: noqa: ARG005 - signatures are what is looked at, and no argument is used

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

import flowsched as fs
from flowsched.runtime.binding import bind_models

ONE = fs.Graph("one", ["x"], [fs.Node("policy", ["x"])])
TWO_INPUTS = fs.Graph("two", ["x", "y"], [fs.Node("reward", ["x", "y"])])
PLACE = fs.ReplicaContext("policy", 0, 1, None)


def _wants(model: Any, graph: fs.Graph = ONE) -> bool:
    name = graph.nodes[0].name
    return bind_models(graph, {name: model}).nodes[name].wants_context


def test_a_context_is_given_to_workers_that_have_a_parameter_of_that_name() -> None:
    assert _wants(lambda batch, context: batch)
    assert _wants(lambda batch, context=None: batch)
    assert _wants(lambda batch, *, context: batch)
    assert _wants(lambda batch, *, context=5: batch)
    assert _wants(lambda batch, other=1, context=None: batch)
    assert not _wants(lambda batch: batch)
    assert not _wants(lambda batch, **options: batch)


def test_an_input_that_takes_the_place_of_context_is_a_batch() -> None:
    assert not _wants(lambda context: context)
    assert not _wants(lambda x, context: x, TWO_INPUTS)
    assert _wants(lambda x, y, context: x, TWO_INPUTS)


@pytest.mark.parametrize("bound", [None, "mine"])
def test_a_context_that_partial_gives_beforehand_is_left_alone(bound: Any) -> None:
    def worker(batch: Any, context: Any) -> Any:
        return batch, context

    assert not _wants(partial(worker, context=bound))
    assert not _wants(partial(partial(worker, context=bound)))


class _Placed:
    def __init__(self, context: Any = None) -> None:
        self.context = context

    def __call__(self, batch: Any, context: Any) -> Any:
        return batch, context


def test_a_constructor_that_asks_is_given_its_place() -> None:
    assert bind_models(ONE, {"policy": _Placed}).build(PLACE).context is PLACE


def test_a_constructor_whose_context_partial_gives_keeps_it_and_its_worker_is_still_given_one() -> None:
    binding = bind_models(ONE, {"policy": partial(_Placed, context="mine")})
    assert binding.build(PLACE).context == "mine"
    assert binding.nodes["policy"].wants_context
