"""Models bound to a graph by name: what is built, what is called, and with how many batches."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from flowsched.batch import Padding, padding_of
from flowsched.errors import BindingError, BuildError, Problem, say_known
from flowsched.graph import Graph, Node
from flowsched.runtime.context import ReplicaContext

Model = Callable[..., Any]
"""A class (built once in each replica), a function (called as it is), or ``functools.partial`` of either."""


@dataclass(frozen=True)
class NodeBinding:
    """How one node calls its replicas.

    Attributes:
        method: name of the method that is called; None for the replica itself.
        wants_context: whether the worker takes a ``context``.
        padding: what the model declares about columns of different trailing length.
    """

    method: str | None
    wants_context: bool
    padding: Mapping[str, Padding]

    @cached_property
    def has_lengths(self) -> bool:
        """Whether the model declares a column that says how long the rows of another one are."""
        return any(padding.lengths for padding in self.padding.values())

    def worker(self, replica: Any) -> Callable[..., Any]:
        """Return what is called on ``replica``."""
        worker: Callable[..., Any] = replica if self.method is None else getattr(replica, self.method)
        return worker


@dataclass(frozen=True)
class Binding:
    """Models that fit their graph.

    Attributes:
        models: the model of each node that has replicas of its own.
        nodes: how each node of the graph calls its replicas, by name.
    """

    models: Mapping[str, Model]
    nodes: Mapping[str, NodeBinding]

    def build(self, context: ReplicaContext) -> Any:
        """Return a new replica of the node named in ``context``: an instance, or the function itself.

        Raises:
            Exception: whatever the constructor raises.
        """
        model = self.models[context.node]
        if not is_class(model):
            return model
        return model(context=context) if _builds_with_context(model) else model()

    def build_workers(self, graph: Graph, context: ReplicaContext) -> dict[int, Callable[..., Any]]:
        """Build the replica of ``context`` and return what each node that it serves calls, by the node's index.

        Raises:
            BuildError: its constructor raised; that exception is the cause.
        """
        try:
            replica = self.build(context)
            served = [node.name for node in graph if graph.owner(node.name).name == context.node]
            return {graph.index(name): self.nodes[name].worker(replica) for name in served}
        except BaseException as cause:
            raise BuildError(
                node=context.node, replica=context.replica, replicas=context.replicas, cause=cause
            ) from cause


def bind_models(graph: Graph, models: Mapping[str, Any]) -> Binding:
    """Bind models to the nodes of a graph.

    Args:
        graph: the graph.
        models: one model for each node that has replicas of its own, by the node's name.

    Raises:
        BindingError: models missing or surplus, without the method named, or taking other arguments than
            one batch for each input.
    """
    problems = list(_name_problems(graph, models))
    if not problems:
        for node in graph:
            problems += _model_problems(node, models[graph.owner(node.name).name])
    if problems:
        raise BindingError(f"models for graph {graph.name!r}", problems)
    nodes = {}
    for node in graph:
        model = models[graph.owner(node.name).name]
        nodes[node.name] = NodeBinding(node.method, _works_with_context(node, model), padding_of(model))
    return Binding(dict(models), nodes)


def is_class(model: Model) -> bool:
    """Whether the model is a class, or ``functools.partial`` of one, and is built in each replica."""
    return inspect.isclass(_innermost(model))


def _name_problems(graph: Graph, models: Mapping[str, Any]) -> Iterator[Problem]:
    given: object = models
    if not isinstance(given, Mapping):
        got = type(given).__name__
        yield Problem("wrong-type", "models", f"a {got} is no mapping", "Give {'node': Model, ...}")
        return
    owners = [node.name for node in graph.owners()]
    for name in owners:
        if name not in models:
            yield Problem(
                "missing-model", f"node {name!r}", "no model is bound to it", f"Add models[{name!r}]"
            )
    for name in models:
        if name in owners:
            continue
        if name in graph:
            message = (
                f"it is served by the replicas of {graph[name].replicas_of!r} and takes no model of its own"
            )
            yield Problem("surplus-model", f"models[{name!r}]", message, "Leave it out")
        else:
            mend = say_known(str(name), owners, "nodes with replicas of their own")
            yield Problem("surplus-model", f"models[{name!r}]", "the graph has no such node", mend)


def _model_problems(node: Node, model: Model) -> Iterator[Problem]:
    place = f"node {node.name!r}"
    said, given = getattr(model, "__name__", repr(model)), cast("object", model)
    if not callable(given):
        message = f"its model is {model!r} ({type(model).__name__}), which cannot be called"
        yield Problem("bad-model", place, message, "Bind a class, a function or functools.partial of either")
        return
    if (misfit := _partial_misfit(model)) is not None:
        mend = "Give only arguments that it takes"
        yield Problem("bad-model", place, misfit, mend)
        return
    if is_class(model):
        if node.replicas_of is None:
            yield from _constructor_problems(place, said, model)
        cls, name = _innermost(model), node.method or "__call__"
        if not _has_method(cls, name):
            known = [key for key in dir(cls) if not key.startswith("_") and _has_method(cls, key)]
            mend = say_known(name, known, "methods") + "; a node names the method it calls by method="
            yield Problem("no-method", place, f"{said} has no method {name!r}", mend)
            return
    elif node.method is not None:
        mend = "Bind a class that has this method, or leave method= out"
        yield Problem("no-method", place, f"method={node.method!r}, but {said} is no class", mend)
        return
    if inspect.iscoroutinefunction(_worker(node, model)):
        mend = "Give a worker that returns its batch, e.g. by asyncio.run(...) inside"
        yield Problem("async-model", place, f"{said} is async, and replicas await nothing", mend)
        return
    yield from _argument_problems(node, place, said, model)


def _partial_misfit(model: Model) -> str | None:
    """Return what a ``functools.partial`` gives arguments to that it does not take, or None."""
    if not isinstance(model, functools.partial) or _signature(model) is not None:
        return None
    inner = _signature(model.func)
    if inner is None:
        return _partial_misfit(model.func)
    name = getattr(model.func, "__name__", repr(model.func))
    given = [*map(repr, model.args), *(f"{key}={value!r}" for key, value in model.keywords.items())]
    return f"{name}{inner} takes no {', '.join(given)}, which functools.partial gives it"


def _constructor_problems(place: str, said: str, model: Model) -> Iterator[Problem]:
    signature = _signature(model)
    if signature is None:
        return
    given = {"context": None} if _builds_with_context(model) else {}
    try:
        signature.bind(**given)
    except TypeError as error:
        mend = f"Give arguments beforehand: functools.partial({said}, ...)"
        yield Problem("bad-constructor", place, f"{said}{signature} cannot be built: {error}", mend)


def _argument_problems(node: Node, place: str, said: str, model: Model) -> Iterator[Problem]:
    signature = _worker_signature(node, model)
    if signature is None:
        return
    given = {"context": None} if _works_with_context(node, model) else {}
    try:
        signature.bind(*node.inputs, **given)
    except TypeError as error:
        name = f"{said}.{node.method}" if node.method else said
        message = f"{name}{signature} cannot take its {len(node.inputs)} inputs: {error}"
        mend = f"A worker takes one batch for each input: {', '.join(node.inputs)}"
        yield Problem("bad-arguments", place, message, mend)


def _innermost(model: Model) -> Model:
    """Return what ``functools.partial`` was made of."""
    while isinstance(model, functools.partial):
        model = model.func
    return model


def _has_method(cls: Any, name: str) -> bool:
    """Whether instances of a class can be called by ``name``."""
    # getattr alone finds, for "__call__", what makes the class itself callable.
    return any(name in vars(base) for base in cls.__mro__) and callable(getattr(cls, name, None))


def _worker(node: Node, model: Model) -> Any:
    """Return the function that the node calls."""
    inner = _innermost(model)
    if inspect.isfunction(inner):
        return inner
    return getattr(inner if is_class(model) else type(inner), node.method or "__call__")


def _worker_signature(node: Node, model: Model) -> inspect.Signature | None:
    """Return the signature of what the node calls, without ``self``; None where Python cannot tell it."""
    if not is_class(model):
        return _signature(model)
    cls, name = _innermost(model), node.method or "__call__"
    signature, static = _signature(getattr(cls, name)), inspect.getattr_static(cls, name)
    unbound = hasattr(static, "__get__") and not isinstance(static, staticmethod | classmethod)
    if signature is None or not unbound:
        return signature
    parameters = list(signature.parameters.values())
    if parameters and parameters[0].kind is inspect.Parameter.VAR_POSITIONAL:
        return signature  # def __call__(*args)
    return signature.replace(parameters=parameters[1:])


def _signature(model: Model) -> inspect.Signature | None:
    try:
        return inspect.signature(model)
    except (TypeError, ValueError):
        return None


def _builds_with_context(model: Model) -> bool:
    return not _binds_context(model) and _takes_context(_signature(model), 0)


def _works_with_context(node: Node, model: Model) -> bool:
    bound = not is_class(model) and _binds_context(model)
    return not bound and _takes_context(_worker_signature(node, model), len(node.inputs))


def _binds_context(model: Model) -> bool:
    """Whether ``functools.partial`` gives ``context`` beforehand, which a signature cannot tell."""
    while isinstance(model, functools.partial):
        if "context" in model.keywords:
            return True
        model = model.func
    return False


def _takes_context(signature: inspect.Signature | None, batches: int) -> bool:
    """Whether a parameter named ``context`` is left after the batches have taken theirs."""
    parameter = signature.parameters.get("context") if signature is not None else None
    if signature is None or parameter is None:
        return False
    if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD:
        return list(signature.parameters).index("context") >= batches
    return parameter.kind is inspect.Parameter.KEYWORD_ONLY
