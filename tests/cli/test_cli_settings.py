"""``--set`` changes fields of a graph before it is used."""

from __future__ import annotations

import pytest

import flowsched as fs
from flowsched.cli.settings import apply_settings
from flowsched.errors import GraphError
from tests.cli.command_line import Cli

GRAPH = fs.Graph(
    "g",
    sources=["x"],
    nodes=[
        fs.Node("a", inputs=["x"], replicas=2, batch_size=4),
        fs.Node("b", inputs=["a"], replicas_of="a", method="score"),
        fs.Node("c", inputs=["a"]),
    ],
)


@pytest.mark.parametrize(
    ("setting", "node", "field", "value"),
    [
        ("nodes.a.replicas=6", "a", "replicas", 6),
        ("nodes.a.batch_size=none", "a", "batch_size", None),
        ("nodes.c.batch_size=3", "c", "batch_size", 3),
        ("nodes.b.replicas_of=none", "b", "replicas_of", None),
        ("nodes.b.method=no", "b", "method", "no"),
        ("nodes.c.inputs=a,b", "c", "inputs", ("a", "b")),
        ("nodes.c.inputs=[x, b]", "c", "inputs", ("x", "b")),
        ("nodes.c.after=b", "c", "after", ("b",)),
        (" nodes.c.expand = 4 ", "c", "expand", 4),
    ],
)
def test_a_field_of_a_node_takes_its_new_value(setting: str, node: str, field: str, value: object) -> None:
    assert getattr(apply_settings(GRAPH, [setting])[node], field) == value


def test_settings_apply_together_and_the_last_one_wins() -> None:
    changed = apply_settings(GRAPH, ["nodes.a.replicas=6", "outputs=a", "nodes.a.replicas=7"])
    assert (changed["a"].replicas, changed.outputs) == (7, ("a",))
    assert GRAPH["a"].replicas == 2


def test_no_settings_leave_the_graph_as_it_is() -> None:
    assert apply_settings(GRAPH, None) is GRAPH


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("nodes.aa.replicas=1", "the graph has no node 'aa'. Did you mean 'a'?"),
        ("nodes.a.replcas=1", "node 'a' has no field 'replcas'. Did you mean 'replicas'?"),
        ("nodes.a.replicas=0", "replicas is 0"),
        ("nodes.a.replicas=six", "replicas is 'six'"),
        ("nodes.a.replicas=1_0", "replicas is '1_0'"),
        ("nodes.a.replicas=06", "replicas is '06'"),
        ("nodes.a.replicas=٣", "replicas is '٣'"),
        ("nodes.a.replicas=none", "replicas is 'none'"),
        ("nodes.a.batch_size=1.5", "batch_size is '1.5'"),
        ("nodes.c.inputs=d", "it names 'd', which nobody produces"),
        ("nodes.a.replicas", None),
        ("node.a.replicas=3", "'node.a.replicas' is no path to a field"),
        ("nodes=3", "'nodes' is no path to a field"),
        ("outputs=", "outputs is empty"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_its_own_text(
    setting: str, said: str | None, cli: Cli
) -> None:
    if said is None:
        assert "is not PATH=VALUE" in cli("plan", "job.yaml", "-n", 5, "--set", setting, ends=2).err
        return
    with pytest.raises(GraphError) as caught:
        apply_settings(GRAPH, [setting])
    (problem,) = caught.value.problems
    assert problem.place.startswith(f"--set {setting}")
    assert said in f"{problem.message}. {problem.mend}"


def test_all_settings_that_cannot_be_are_refused_at_once() -> None:
    with pytest.raises(GraphError) as caught:
        apply_settings(GRAPH, ["nodes.aa.replicas=1", "nodes.a.replicas=0"])
    assert [problem.code for problem in caught.value.problems] == ["unknown-name", "too-small"]


@pytest.mark.parametrize("command", ["plan", "explain", "validate"])
def test_every_command_on_graphs_takes_settings(cli: Cli, command: str) -> None:
    plain = cli(command, "job.yaml", "-n", 40).out
    assert cli(command, "job.yaml", "-n", 40, "--set", "nodes.reward.replicas=6").out != plain
    assert cli(command, "job.py", "-n", 40, "--set", "nodes.reward.replicas=3").out == plain
