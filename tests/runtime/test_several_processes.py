"""What a backend of several processes builds on: outputs that meet, steps agreed on, outputs that are elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest

import flowsched as fs
from flowsched.backend import Backend, Deployment, Feature, Program, Running, Step
from flowsched.errors import BackendError, FlowschedError, InputError, OutputError, SessionError
from flowsched.runtime.binding import bind_models
from flowsched.runtime.outputs import Outputs, OutputsElsewhereError

GRAPH = fs.Graph("pair", ["x"], [fs.Node("a", ["x"], replicas=2, batch_size=2)])


def _step() -> Step:
    plan = fs.compile(GRAPH, 8)
    return Step(Program(plan), bind_models(GRAPH, {"a": _same}), [np.arange(8)], 0, 0, [8])


def _same(numbers: Any) -> Any:
    return numbers


def _run(step: Step, call: int, worker: Callable[..., Any]) -> None:
    links = step.program.links[call]
    step.run(links, worker, step.gather(links, _sources(step)), None, lambda: False)


def _sources(step: Step) -> Sequence[Any]:
    return [*[None] * step.plan.table.calls, *reversed(step.inputs)]


@pytest.mark.parametrize("here_first", [True, False])
def test_outputs_of_one_node_that_differ_between_processes_are_refused(here_first: bool) -> None:
    here, there = _step(), _step()
    first, second = (here, there) if here_first else (there, here)
    _run(first, 0, lambda numbers: numbers)
    _run(second, 2, lambda numbers: numbers.astype(np.float32))
    with pytest.raises(
        OutputError, match=r"its output differs from that of a\.0\.0\[0:2\].*int64.*float32"
    ) as caught:
        here.meet(there.seen())
    assert (caught.value.call, caught.value.samples) == ("a.0.1[4:6]", (4, 6))


def test_rows_of_other_shapes_in_another_process_are_looked_at_when_outputs_are_collected() -> None:
    here, there = _step(), _step()
    _run(here, 0, lambda numbers: numbers[:, None])
    _run(there, 1, lambda numbers: np.zeros((len(numbers), 3), numbers.dtype))
    here.meet(there.seen())
    pieces = [np.zeros((2, 1), int), np.zeros((2, 3), int), np.zeros((2, 1), int), np.zeros((2, 1), int)]
    with pytest.raises(OutputError, match=r"\(3,\)"):
        here.collect(pieces)


def test_fragments_that_were_cut_elsewhere_are_joined_as_those_cut_here() -> None:
    graph = fs.Graph(
        "cut",
        ["x"],
        [
            fs.Node("a", ["x"], replicas=2, batch_size=2),
            fs.Node("b", ["a"], batch_size=3, expand=1),
        ],
    )
    plan = fs.compile(graph, 8)
    step = Step(Program(plan), bind_models(graph, {"a": _same, "b": _same}), [np.arange(8)], 0, 0, [8, 8])
    made = [
        np.arange(*plan.made_rows(call)) if plan.table.node[call] == 0 else None
        for call in range(plan.table.calls)
    ]
    for links in step.program.links:
        if links.node == 1:
            parts = [[made[p][start:stop] for p, start, stop in read.fragments] for read in links.reads]  # type: ignore[index]
            joined, gathered = step.join(links, parts), step.gather(links, made)
            assert [batch.tolist() for batch in joined] == [batch.tolist() for batch in gathered]


class _Recorded(Running):
    """Runs nothing; says what it was asked."""

    def __init__(self, samples: int) -> None:
        self.samples = samples
        self.asked: list[int | None] = []

    def agree(self, samples: int | None) -> int:
        self.asked.append(samples)
        return self.samples

    def run(self, step: Step) -> Outputs:
        assert step.inputs == [None]
        return Outputs.elsewhere(step.plan.graph.outputs, "they are at rank 0")

    def close(self) -> None:
        pass


class _Several(Backend):
    """A backend whose session is run by several processes, of which this one holds no inputs."""

    name: ClassVar[str] = "several"
    lacks = frozenset({Feature.AFTER, Feature.OBSERVER})

    def __init__(self, samples: int = 8) -> None:
        self.running = _Recorded(samples)

    def start(self, deployment: Deployment) -> Running:  # noqa: ARG002 - it runs nothing
        return self.running

    def needs_inputs(self) -> bool:
        return False


def test_a_process_without_inputs_plans_what_the_others_agree_on() -> None:
    backend = _Several(samples=8)
    with fs.start(GRAPH, {"a": _same}, backend=backend) as session:
        outputs = session.run(None)
    assert backend.running.asked == [None]
    assert not outputs.are_here
    assert list(outputs) == ["a"]
    with pytest.raises(OutputsElsewhereError, match="they are at rank 0"):
        outputs["a"]


def test_a_plan_of_other_samples_than_the_others_have_is_refused() -> None:
    with pytest.raises(InputError, match="they have 9 rows, the plan 8"):
        fs.run(fs.compile(GRAPH, 8), {"a": _same}, None, backend=_Several(samples=9))


def test_a_step_without_inputs_is_refused_where_nobody_else_has_them() -> None:
    with (
        pytest.raises(InputError, match="a NoneType is no mapping"),
        fs.start(GRAPH, {"a": _same}) as session,
    ):
        session.run(None)
    with pytest.raises(SessionError, match="no inputs"):
        Running.agree(_Recorded(8), None)


def test_what_a_backend_lacks_is_refused_with_both_names_before_it_is_started() -> None:
    graph = fs.Graph("late", ["x"], [*GRAPH.nodes, fs.Node("b", ["x"], after=["a"])])
    with pytest.raises(
        BackendError, match="backend 'several' lacks 'after', which node 'b' of graph 'late' needs"
    ):
        fs.start(graph, {"a": _same, "b": _same}, backend=_Several())
    with pytest.raises(BackendError, match="lacks 'observer', which observer= needs"):
        fs.start(GRAPH, {"a": _same}, backend=_Several(), observer=print)


def test_errors_of_outputs_are_flowscheds_own() -> None:
    assert issubclass(OutputsElsewhereError, FlowschedError)
