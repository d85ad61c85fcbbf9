"""All problems of a graph are reported in one look, and none that only follows from another."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowsched as fs
from flowsched.errors import GraphError, Problem
from flowsched.graph.from_document import graph_from_dict

Data = dict[str, Any]
Found = set[tuple[str, tuple[str | int, ...]]]

SOUND: Data = {
    "name": "big",
    "sources": ["prompts", "images"],
    "nodes": [
        {"name": "policy", "inputs": ["prompts"], "replicas": 4, "batch_size": 8, "expand": 4},
        {"name": "logprob", "inputs": ["policy"], "replicas_of": "policy", "method": "logprob"},
        {"name": "score", "inputs": ["policy"], "replicas_of": "policy", "method": "score"},
        {"name": "judge", "inputs": ["policy", "images"], "replicas": 2},
        {"name": "critic", "inputs": ["judge", "policy"]},
        {"name": "reward", "inputs": ["critic", "policy"], "batch_size": 12, "group": 4},
        {"name": "mean", "inputs": ["reward"], "collapse": 4, "batch_size": 8},
        {"name": "left", "inputs": ["policy"]},
        {"name": "right", "inputs": ["left"], "after": ["reward"]},
        {"name": "first", "inputs": ["policy"]},
        {"name": "second", "inputs": ["policy"]},
        {"name": "loss", "inputs": ["mean", "logprob"]},
        {"name": "spare", "inputs": ["policy"], "replicas": 3},
        {"name": "extra", "inputs": ["policy", "judge"]},
        {"name": "twin", "inputs": ["policy"]},
    ],
    "outputs": ["loss", "right", "mean", "second"],
}


def _node(data: Data, name: str) -> Data:
    """Return the node that is called ``name`` in ``SOUND``."""
    at = next(i for i, node in enumerate(SOUND["nodes"]) if node["name"] == name)
    node: Data = data["nodes"][at]
    return node


def _set(node: str, /, **changes: Any) -> Callable[[Data], None]:
    return lambda data: _node(data, node).update(changes)


def _no_node(data: Data) -> None:
    data["nodes"][data["nodes"].index(_node(data, "critic"))] = 3


def _bad_name_that_others_read(data: Data) -> None:
    _node(data, "left")["name"] = "left one"
    _node(data, "right")["inputs"] = ["left one"]


def _respell(node: str | None, key: str, misspelt: str) -> Callable[[Data], None]:
    def respell(data: Data) -> None:
        row = data if node is None else _node(data, node)
        row[misspelt] = row.pop(key)

    return respell


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong: how it is done to sound data, and the codes that it is reported by."""

    do: Callable[[Data], object]
    codes: tuple[str, ...]


FAULTS = {
    "graph called by no name": Fault(lambda data: data.update(name="1st"), ("bad-name",)),
    "a source that is a number": Fault(lambda data: data["sources"].__setitem__(1, 7), ("wrong-type",)),
    "no replicas": Fault(_set("spare", replicas=0), ("too-small",)),
    "a batch size that is a truth": Fault(_set("judge", batch_size=True), ("wrong-type",)),
    "replicas that are a text": Fault(_set("first", replicas="2"), ("wrong-type",)),
    "inputs that are one string": Fault(_set("second", inputs="policy"), ("wrong-type",)),
    "an input that is a number": Fault(_set("logprob", inputs=["policy", 3]), ("wrong-type",)),
    "an owner that is a number": Fault(_set("extra", replicas_of=3), ("wrong-type",)),
    "a method that is no name": Fault(_set("score", method="to score"), ("bad-name",)),
    "a name with a space that others read": Fault(_bad_name_that_others_read, ("bad-name", "bad-name")),
    "a name that is none, of a node that others read": Fault(_set("judge", name=None), ("wrong-type",)),
    "something else than a node that others read": Fault(_no_node, ("wrong-type",)),
    "an unknown input": Fault(_set("first", inputs=["policy", "prompt"]), ("unknown-name",)),
    "an unknown node to wait for": Fault(_set("second", after=["polcy"]), ("unknown-name",)),
    "an unknown owner": Fault(_set("spare", replicas_of="polici"), ("unknown-name",)),
    "an unknown output": Fault(lambda data: data["outputs"].__setitem__(3, "secnd"), ("unknown-name",)),
    "two nodes of one name": Fault(_set("twin", name="spare"), ("duplicate-name",)),
    "an output named twice": Fault(lambda data: data["outputs"].append("loss"), ("duplicate-name",)),
    "an output that is a number": Fault(lambda data: data["outputs"].__setitem__(1, 7), ("wrong-type",)),
    "a node that reads nothing": Fault(_set("critic", inputs=[]), ("empty",)),
    "an input read twice": Fault(_set("critic", inputs=["judge", "policy", "judge"]), ("duplicate-name",)),
    "an owner without replicas of its own": Fault(_set("loss", replicas_of="logprob"), ("bad-replicas-of",)),
    "other replicas than the owner has": Fault(_set("score", replicas=3), ("bad-replicas-of",)),
    "a group that collapse does not divide": Fault(_set("mean", group=6), ("group",)),
    "a batch size below the group": Fault(_set("reward", batch_size=3), ("group",)),
    "two nodes that read each other": Fault(_set("judge", inputs=["critic", "images"]), ("cycle",)),
    "a node that waits for its reader": Fault(_set("left", after=["right"]), ("cycle",)),
    "a node that reads itself": Fault(_set("second", inputs=["second"]), ("cycle",)),
}
OF_FILES = {
    "a key that is no field": Fault(_set("left", colour=3), ("unknown-key",)),
    "a misspelt key": Fault(_respell("policy", "batch_size", "batchsize"), ("unknown-key",)),
    "misspelt inputs": Fault(_respell("extra", "inputs", "input"), ("unknown-key",)),
    "misspelt sources": Fault(_respell(None, "sources", "source"), ("unknown-key",)),
    "a schema that is a number": Fault(lambda data: data.update({"$schema": 3}), ("wrong-type",)),
}
"""Faults that only files can have."""


EXCLUSIVE = [
    {"an unknown input", "replicas that are a text"},
    {"two nodes that read each other", "a node that reads nothing", "an input read twice"},
    {"an unknown node to wait for", "inputs that are one string", "a node that reads itself"},
    {"a name that is none, of a node that others read", "two nodes that read each other"},
    {"something else than a node that others read", "two nodes that read each other"},
    {"something else than a node that others read", "a node that reads nothing"},
    {"something else than a node that others read", "an input read twice"},
    {"a name with a space that others read", "a node that waits for its reader"},
    {"a source that is a number", "misspelt sources"},
]
"""Faults of the same fields: these are not independent."""


def _fault_sets(names: Iterable[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(sorted(names)), min_size=2, max_size=12, unique=True).map(_independent)


def _independent(names: list[str]) -> list[str]:
    """Leave out what spoils the same fields as a fault before it."""
    kept: list[str] = []
    for name in names:
        if not any({name, other} <= both for both in EXCLUSIVE for other in kept):
            kept.append(name)
    return kept


def spoiled(names: Iterable[str]) -> Data:
    data = deepcopy(SOUND)
    for name in names:
        fault = FAULTS.get(name) or OF_FILES[name]
        fault.do(data)
    return data


def problems_in_python(data: Data) -> tuple[Problem, ...]:
    nodes = [fs.Node(**row) if isinstance(row, dict) else row for row in data["nodes"]]
    try:
        fs.Graph(data["name"], sources=data["sources"], nodes=nodes, outputs=data["outputs"])
    except GraphError as error:
        return error.problems
    return ()


def problems_in_data(data: Data) -> tuple[Problem, ...]:
    try:
        graph_from_dict(data, "here")
    except GraphError as error:
        return error.problems
    return ()


def said(problems: Iterable[Problem]) -> Found:
    """Return what is wrong and where; sentences hold names, which other faults change."""
    return {(problem.code, problem.where) for problem in problems}


def test_the_graph_that_is_spoiled_here_is_sound() -> None:
    assert problems_in_python(SOUND) == problems_in_data(SOUND) == ()


@pytest.mark.parametrize("name", FAULTS)
def test_a_single_fault_is_reported_as_itself_and_by_nothing_that_follows(name: str) -> None:
    data = spoiled([name])
    assert tuple(problem.code for problem in problems_in_python(data)) == FAULTS[name].codes
    assert tuple(problem.code for problem in problems_in_data(data)) == FAULTS[name].codes


@pytest.mark.parametrize("name", OF_FILES)
def test_a_single_fault_of_keys_is_reported_as_itself(name: str) -> None:
    assert tuple(problem.code for problem in problems_in_data(spoiled([name]))) == OF_FILES[name].codes


@given(names=_fault_sets(FAULTS))
@settings(max_examples=150, deadline=None)
def test_several_faults_in_python_are_reported_as_each_alone(names: list[str]) -> None:
    alone = [said(problems_in_python(spoiled([name]))) for name in names]
    assert said(problems_in_python(spoiled(names))) == set().union(*alone)


@given(names=_fault_sets([*FAULTS, *OF_FILES]))
@settings(max_examples=150, deadline=None)
def test_several_faults_in_data_are_reported_as_each_alone(names: list[str]) -> None:
    alone = [said(problems_in_data(spoiled([name]))) for name in names]
    assert said(problems_in_data(spoiled(names))) == set().union(*alone)


@pytest.mark.parametrize("suffix", [".json", ".yaml"])
def test_the_same_faults_in_a_file_are_reported_at_their_lines(tmp_path: Path, suffix: str) -> None:
    data = spoiled(_independent([*FAULTS, *OF_FILES]))
    path = tmp_path / f"bad{suffix}"
    path.write_text(json.dumps(data, indent=1))
    with pytest.raises(GraphError) as caught:
        fs.load_graph(path)
    found = [problem.code for problem in caught.value.problems]
    assert sorted(found) == sorted(problem.code for problem in problems_in_data(data))
    assert len(found) >= 24
    lines = [int(problem.place.removeprefix(f"{path}:").split(":")[0]) for problem in caught.value.problems]
    assert lines == sorted(lines)
    assert len(set(lines)) >= 20


def codes(*nodes: fs.Node, sources: Any = ("x",), outputs: Any = None) -> list[str]:
    with pytest.raises(GraphError) as caught:
        fs.Graph("g", sources=sources, nodes=nodes, outputs=outputs)
    return [problem.code for problem in caught.value.problems]


def test_one_node_is_blamed_for_its_size_and_for_its_input() -> None:
    assert codes(fs.Node("policy", inputs=["promt"], replicas=0)) == ["too-small", "unknown-name"]


def test_one_string_is_looked_up_as_the_list_that_the_mend_makes_of_it() -> None:
    assert codes(fs.Node("a", inputs="promt"), sources=["prompts"]) == ["wrong-type", "unknown-name"]
    assert codes(fs.Node("a", inputs="x, y"), sources=["x", "y"]) == ["wrong-type"]
    assert codes(fs.Node("a", inputs=["prompts"]), sources="prompts") == ["wrong-type"]
    assert codes(fs.Node("a", inputs=["promts"]), sources="prompts") == ["wrong-type", "unknown-name"]


@pytest.mark.parametrize("sources", [None, 3, "x, y"])
def test_what_may_be_an_unreadable_source_is_not_unknown(sources: Any) -> None:
    nodes = [fs.Node("a", inputs=["x"], after=["y"]), fs.Node("b", inputs=["a"])]
    assert codes(*nodes, sources=sources) == ["wrong-type", "unknown-name"]  # after never names a source


def test_one_unreadable_name_excuses_one_unknown_name_and_not_the_misspelt_one() -> None:
    nodes: list[Any] = [
        fs.Node(None, inputs=["x"]),  # type: ignore[arg-type]
        fs.Node("policy", inputs=["x"]),
        fs.Node("a", inputs=["judge", "polcy"]),
        fs.Node("b", inputs=["policy"], after=["judge"]),
    ]
    with pytest.raises(GraphError) as caught:
        fs.Graph("g", sources=["x"], nodes=nodes)
    assert [problem.message for problem in caught.value.problems[1:]] == [
        "it names 'polcy', which nobody produces"
    ]


def test_nothing_is_built_upon_a_name_that_two_nodes_have() -> None:
    nodes = [
        fs.Node("a", inputs=["x"], replicas=2),
        fs.Node("b", inputs=["a"], replicas_of="a", replicas=2),
        fs.Node("a", inputs=["b"], replicas=3),
    ]
    assert codes(*nodes) == ["duplicate-name"]


def test_every_loop_is_reported_once_with_its_path_from_the_first_declared_node() -> None:
    nodes = [
        fs.Node("a", inputs=["x", "c"]),
        fs.Node("b", inputs=["a"]),
        fs.Node("c", inputs=["b"]),
        fs.Node("d", inputs=["c"], after=["e"]),
        fs.Node("e", inputs=["d"]),
        fs.Node("f", inputs=["f"], replicas=0),
    ]
    with pytest.raises(GraphError) as caught:
        fs.Graph("g", sources=["x"], nodes=nodes)
    assert [problem.message for problem in caught.value.problems] == [
        "replicas is 0",
        "nodes wait for each other: a -> b -> c -> a",
        "nodes wait for each other: d -> e -> d",
        "it waits for itself: f -> f",
    ]
    assert all("Leave one of these names out of the inputs" in p.mend for p in caught.value.problems[1:])


def test_a_batch_size_below_collapse_is_reported_beside_a_group_that_does_not_fit() -> None:
    assert codes(fs.Node("a", inputs=["x"], group=6, collapse=4, batch_size=2)) == ["group", "group"]


def test_what_stands_under_a_misspelt_key_is_looked_at_too() -> None:
    data = {
        "name": "g",
        "source": ["x"],
        "nodes": [{"name": "a", "input": ["y"], "replcas": 0}, {"nam": "b", "inputs": ["b"]}],
    }
    problems = problems_in_data(data)
    assert sorted(problem.code for problem in problems) == [
        "cycle", "too-small", "unknown-key", "unknown-key", "unknown-key", "unknown-key", "unknown-name",
    ]  # fmt: skip
    places = {problem.code: problem.where for problem in problems}
    assert places["too-small"] == ("nodes", 0, "replcas")
    assert places["unknown-name"] == ("nodes", 0, "input", 0)


@pytest.mark.parametrize("key", ["reads", "data", "inp"])
def test_a_node_whose_inputs_may_stand_under_an_unknown_key_is_not_said_to_read_nothing(key: str) -> None:
    data: Data = {"name": "g", "sources": ["x"], "nodes": [{"name": "a", key: ["x"]}]}
    assert [problem.code for problem in problems_in_data(data)] == ["unknown-key"]


def test_a_node_whose_unknown_key_holds_no_names_is_said_to_read_nothing() -> None:
    data = {"name": "g", "sources": ["x"], "nodes": [{"name": "a", "colour": 3}]}
    assert [problem.code for problem in problems_in_data(data)] == ["unknown-key", "empty"]


def test_a_key_that_is_only_a_little_like_a_field_is_not_read_as_that_field() -> None:
    data = {"name": "g", "sources": ["x"], "nodes": [{"nm": "a", "inputs": ["x"], "batch": "big"}]}
    assert [problem.code for problem in problems_in_data(data)] == ["unknown-key", "unknown-key"]
