"""Misspelt keywords of nodes and graphs."""

from __future__ import annotations

import inspect
from dataclasses import replace

import pytest

import flowsched as fs

# mypy refuses the same lines: were the typed signatures lost, it would call the comments here unused.


def test_a_misspelt_field_of_a_node_is_refused_with_the_closest_one() -> None:
    with pytest.raises(TypeError, match=r"Node\(\) has no field 'replcas'. Did you mean 'replicas'\? Known"):
        fs.Node("policy", inputs=["x"], replcas=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Did you mean 'batch_size'"):
        fs.Node("policy", inputs=["x"], batchsize=2)  # type: ignore[call-arg]


def test_a_misspelt_field_of_a_graph_is_refused_with_the_closest_one() -> None:
    with pytest.raises(TypeError, match=r"Graph\(\) has no field 'source'. Did you mean 'sources'\?"):
        fs.Graph("g", source=["x"], nodes=[])  # type: ignore[call-arg]


def test_what_else_is_wrong_with_the_arguments_is_said_by_python() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'name'"):
        fs.Node(inputs=["x"])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional arguments"):
        fs.Node("a", ["x"], 2)  # type: ignore[call-arg]


def test_signatures_are_those_that_are_written() -> None:
    assert list(inspect.signature(fs.Node).parameters)[:3] == ["name", "inputs", "replicas"]
    assert list(inspect.signature(fs.Graph).parameters) == ["name", "sources", "nodes", "outputs"]
    assert replace(fs.Node("a", inputs=["x"]), replicas=3) == fs.Node("a", inputs=["x"], replicas=3)
