"""Models fit their graph before anything is built: what is missing, surplus or takes other arguments is told."""

# ruff: noqa: ARG005 - signatures are what is looked at, and no argument is used

from __future__ import annotations

import functools
from functools import partial
from operator import itemgetter
from typing import Any

import pytest
import torch

import flowsched as fs
from flowsched.errors import BindingError
from flowsched.runtime.binding import Binding, bind_models


def graph_of(*nodes: fs.Node, sources: list[str] | None = None) -> fs.Graph:
    return fs.Graph("ppo", sources=sources or ["x"], nodes=nodes)


ONE = graph_of(fs.Node("policy", ["x"]))
TWO_INPUTS = graph_of(fs.Node("reward", ["x", "y"]), sources=["x", "y"])
SHARED = graph_of(
    fs.Node("policy", ["x"], method="generate"),
    fs.Node("logprob", ["policy"], replicas_of="policy", method="score"),
)


def problems_of(graph: fs.Graph, models: Any) -> list[tuple[str, str]]:
    """Return code and sentence of each problem."""
    with pytest.raises(BindingError) as caught:
        bind_models(graph, models)
    return [(problem.code, str(problem)) for problem in caught.value.problems]


def only_problem(graph: fs.Graph, models: Any) -> str:
    ((_, sentence),) = problems_of(graph, models)
    return sentence


def work(batch: Any) -> Any:
    return batch


class Model:
    """A model with several methods."""

    def __init__(self, size: int = 1) -> None:
        self.size = size

    def __call__(self, batch: Any) -> Any:
        return batch

    def generate(self, batch: Any) -> Any:
        return batch

    def score(self, batch: Any, context: fs.Context) -> Any:
        return batch, context

    @staticmethod
    def fixed(batch: Any) -> Any:
        return batch

    @classmethod
    def shared(cls, batch: Any, *, context: fs.Context) -> Any:
        return batch, context

    def scaled(self, batch: Any, factor: int) -> Any:
        return batch * factor

    doubled = functools.partialmethod(scaled, factor=2)


def test_a_node_without_a_model_is_told_with_the_mend() -> None:
    assert only_problem(ONE, {}) == (
        "[missing-model] node 'policy': no model is bound to it. Add models['policy']"
    )


def test_a_misspelt_model_is_told_with_the_name_that_was_meant() -> None:
    problems = problems_of(ONE, {"polcy": work})
    assert [code for code, _ in problems] == ["missing-model", "surplus-model"]
    assert "models['polcy']: the graph has no such node. Did you mean 'policy'?" in problems[1][1]


def test_all_names_that_do_not_fit_are_told_at_once() -> None:
    graph = graph_of(fs.Node("policy", ["x"]), fs.Node("reward", ["x"]))
    assert [code for code, _ in problems_of(graph, {1: work, None: work, "value": work})] == [
        "missing-model",
        "missing-model",
        "surplus-model",
        "surplus-model",
        "surplus-model",
    ]


def test_a_model_for_a_node_that_others_serve_is_surplus() -> None:
    assert "served by the replicas of 'policy' and takes no model of its own" in only_problem(
        SHARED, {"policy": Model, "logprob": Model}
    )


@pytest.mark.parametrize("models", [None, [Model], Model, "policy"])
def test_models_are_a_mapping(models: Any) -> None:
    assert "is no mapping" in only_problem(ONE, models)


def test_models_may_be_any_mapping_and_are_copied() -> None:
    class Models(dict[str, Any]):
        """A dict of somebody's own."""

    models = Models(policy=work)
    binding = bind_models(ONE, models)
    models.clear()
    assert binding.models["policy"] is work


@pytest.mark.parametrize("model", [3, "policy", None, Model(), [work]], ids=str)
def test_what_cannot_be_called_is_no_model(model: Any) -> None:
    if isinstance(model, Model):
        assert bind_models(ONE, {"policy": model}).build(_place()) is model
    else:
        assert "which cannot be called. Bind a class, a function" in only_problem(ONE, {"policy": model})


class Uncallable:
    """Has no __call__; calling the class itself makes an instance all the same."""

    def generate(self, batch: Any) -> Any:
        return batch


@pytest.mark.parametrize(
    "model", [Uncallable, partial(Uncallable), int, type("Off", (Model,), {"__call__": None})]
)
def test_a_class_whose_instances_cannot_be_called_is_told_before_it_is_built(model: Any) -> None:
    sentence = only_problem(ONE, {"policy": model})
    assert sentence.startswith("[no-method] node 'policy':")
    assert "has no method '__call__'" in sentence
    assert "a node names the method it calls by method=" in sentence


def test_a_method_that_is_not_there_is_told_with_the_one_that_was_meant() -> None:
    graph = graph_of(fs.Node("policy", ["x"], method="generat"))
    assert "Model has no method 'generat'. Did you mean 'generate'?" in only_problem(graph, {"policy": Model})


def test_a_method_needs_a_class() -> None:
    graph = graph_of(fs.Node("policy", ["x"], method="generate"))
    assert "method='generate', but work is no class" in only_problem(graph, {"policy": work})
    assert "is no class" in only_problem(graph, {"policy": Model()})


@pytest.mark.parametrize("method", ["generate", "score", "fixed", "shared", "doubled"])
def test_methods_of_all_kinds_can_be_called_by_name(method: str) -> None:
    binding = bind_models(graph_of(fs.Node("policy", ["x"], method=method)), {"policy": partial(Model, 3)})
    worker = binding.nodes["policy"].worker(binding.build(_place()))
    given = {"context": "here"} if binding.nodes["policy"].wants_context else {}
    assert worker("batch", **given) == {
        "score": ("batch", "here"),
        "shared": ("batch", "here"),
        "doubled": "batchbatch",
    }.get(method, "batch")


@pytest.mark.parametrize(
    ("graph", "model", "said"),
    [
        (
            TWO_INPUTS,
            work,
            "work(batch: 'Any') -> 'Any' cannot take its 2 inputs: too many positional arguments",
        ),
        (TWO_INPUTS, Model, "Model(batch: 'Any') -> 'Any' cannot take its 2 inputs"),
        (ONE, lambda left, right: left, "missing a required argument: 'right'"),
        (ONE, lambda: None, "cannot take its 1 inputs"),
        (ONE, lambda batch, *, temperature: batch, "missing a required argument: 'temperature'"),
        (ONE, lambda batch, context, /: batch, "missing a required argument: 'context'"),
        (ONE, partial(lambda scale, batch: batch, scale=2), "cannot take its 1 inputs"),
    ],
)
def test_a_worker_that_takes_other_arguments_is_told_with_its_signature(
    graph: fs.Graph, model: Any, said: str
) -> None:
    sentence = only_problem(graph, {graph.nodes[0].name: model})
    assert sentence.startswith("[bad-arguments]")
    assert said in sentence
    assert f"A worker takes one batch for each input: {', '.join(graph.nodes[0].inputs)}" in sentence


def test_the_arguments_of_each_node_of_a_shared_model_are_looked_at() -> None:
    graph = graph_of(
        fs.Node("policy", ["x"], method="generate"),
        fs.Node("logprob", ["policy", "x"], replicas_of="policy", method="score"),
    )
    assert "node 'logprob': _TakesOne.score" in only_problem(graph, {"policy": _TakesOne})


class _TakesOne:
    def generate(self, batch: Any) -> Any:
        return batch

    def score(self, batch: Any) -> Any:
        return batch


class NeedsArguments:
    """Cannot be built without its argument."""

    def __init__(self, weights: str) -> None:
        self.weights = weights

    def __call__(self, batch: Any) -> Any:
        return batch


def test_a_constructor_that_needs_arguments_is_told_with_the_mend() -> None:
    sentence = only_problem(ONE, {"policy": NeedsArguments})
    assert "cannot be built: missing a required argument: 'weights'" in sentence
    assert "Give arguments beforehand: functools.partial(NeedsArguments, ...)" in sentence


def test_partial_gives_a_constructor_its_arguments() -> None:
    for model in (partial(NeedsArguments, "here"), partial(NeedsArguments, weights="here")):
        assert bind_models(ONE, {"policy": model}).build(_place()).weights == "here"


@pytest.mark.parametrize("model", [max, itemgetter(0), dict.fromkeys], ids=repr)
def test_callables_that_say_little_of_their_arguments_are_taken_on_trust(model: Any) -> None:
    assert not bind_models(ONE, {"policy": model}).nodes["policy"].wants_context


def _variadic(*batches: Any) -> Any:
    return batches


def _variadic_with_context(*batches: Any, context: fs.Context) -> Any:
    return batches, context


class _Variadic:
    def __call__(self, *batches: Any) -> Any:
        return batches


class _AllVariadic:
    def __call__(*everything: Any) -> Any:
        return everything


@pytest.mark.parametrize("model", [_variadic, _variadic_with_context, _Variadic, _AllVariadic])
def test_a_worker_may_take_any_number_of_batches(model: Any) -> None:
    for graph in (ONE, TWO_INPUTS):
        name = graph.nodes[0].name
        assert bind_models(graph, {name: model}).nodes[name].wants_context is (
            model is _variadic_with_context
        )


def test_a_function_is_called_as_it_is_and_a_class_is_built_each_time() -> None:
    assert bind_models(ONE, {"policy": work}).build(_place()) is work
    binding = bind_models(ONE, {"policy": Model})
    assert binding.build(_place()) is not binding.build(_place())


def test_a_torch_module_is_a_model() -> None:
    class Doubling(torch.nn.Module):
        """A model of somebody else's."""

        def forward(self, batch: Any) -> Any:
            return batch * 2

    binding = bind_models(ONE, {"policy": Doubling})
    assert binding.nodes["policy"].worker(binding.build(_place()))(torch.ones(2)).tolist() == [2, 2]


def test_padding_is_that_of_the_model_that_owns_the_replicas() -> None:
    @fs.pads(ids=0)
    class Padding(Model):
        """Declares padding."""

    binding: Binding = bind_models(SHARED, {"policy": Padding})
    assert binding.nodes["policy"].padding == binding.nodes["logprob"].padding == {"ids": fs.Padding(0)}


def test_nothing_is_built_where_models_do_not_fit() -> None:
    built: list[int] = []

    class Building(Model):
        """Notes that it is built."""

        def __init__(self) -> None:
            built.append(1)

    graph = graph_of(fs.Node("a", ["x"]), fs.Node("b", ["x"]))
    with pytest.raises(BindingError):
        fs.start(graph, {"a": Building, "b": NeedsArguments})
    assert built == []


def _place() -> fs.ReplicaContext:
    return fs.ReplicaContext("policy", 0, 1, None)
