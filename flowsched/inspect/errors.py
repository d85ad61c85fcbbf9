"""Questions about a plan that have no answer."""

from __future__ import annotations

from collections.abc import Iterable

from flowsched.errors import FlowschedError, say_known
from flowsched.graph import Graph
from flowsched.graph.fields import say_short, say_value


class ExplainError(FlowschedError):
    """A question about something that the plan does not have.

    Args:
        problem: what was asked for, and what there is, with numbers.
        mend: how to ask instead.
        code: stable kebab-case name of the kind of problem.
    """

    def __init__(self, problem: str, mend: str, *, code: str) -> None:
        self.problem = problem
        self.mend = mend
        self.code = code
        super().__init__(f"{problem}. {mend}")

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.problem, self.mend, self.code)

    @classmethod
    def unknown_node(cls, graph: Graph, name: object) -> ExplainError:
        """``name`` is no node of the graph."""
        names = [node.name for node in graph]
        if isinstance(name, str) and name in graph.sources:
            mend = f"Name a node, e.g. one that reads it: {', '.join(graph.readers(name)) or names[0]}"
            return cls(f"{name!r} is a source of graph {graph.name!r}, not a node", mend, code="unknown-node")
        problem = f"graph {graph.name!r} has no node {say_short(name)}"
        return cls(
            problem, say_known(name if isinstance(name, str) else "", names, "nodes"), code="unknown-node"
        )

    @classmethod
    def unknown_producer(cls, graph: Graph, name: object) -> ExplainError:
        """``name`` is neither a source nor a node of the graph."""
        names = [*graph.sources, *(node.name for node in graph)]
        problem = f"graph {graph.name!r} has neither a source nor a node {name!r}"
        return cls(problem, say_known(str(name), names, "sources and nodes"), code="unknown-node")

    @classmethod
    def no_edge(cls, graph: Graph, producer: str, consumer: str) -> ExplainError:
        """Both are there, but ``consumer`` does not read ``producer``."""
        node = graph[consumer]
        problem = f"node {consumer!r} of graph {graph.name!r} does not read {producer!r}"
        if producer in node.after:
            problem = f"node {consumer!r} waits for {producer!r} (after), but reads no rows of it"
        mend = f"It reads {', '.join(node.inputs)}"
        if producer in graph and consumer in graph[producer].inputs:
            mend = f"It is the other way round: '{consumer}->{producer}'"
        return cls(problem, mend, code="unknown-edge")

    @classmethod
    def not_an_edge(cls, edge: object) -> ExplainError:
        """``edge`` does not name a producer and a consumer."""
        mend = "Write the two with an arrow between them: 'policy->reward'"
        return cls(
            f"edge is {say_short(edge)}, which is not a producer and a consumer", mend, code="not-an-edge"
        )

    @classmethod
    def not_a_sample(cls, sample: object) -> ExplainError:
        """``sample`` is not a whole number."""
        problem = f"sample is {say_value(sample)}, which is not a whole number"
        return cls(problem, "Give the sample's index in the step's input", code="not-a-sample")

    @classmethod
    def no_such_sample(cls, sample: int, samples: int) -> ExplainError:
        """``sample`` is not among the plan's ``samples``."""
        if not samples:
            return cls("the plan has no samples", "Plan for 1 sample or more", code="unknown-sample")
        problem = f"there is no sample {_say_number(sample)}: the plan has {samples:,}"
        return cls(problem, f"Ask for a sample from 0 to {samples - 1}", code="unknown-sample")

    @classmethod
    def not_a_replica(cls, replica: object) -> ExplainError:
        """``replica`` does not name a node and an index."""
        mend = "Write the two with a dot between them: 'policy.1'"
        return cls(
            f"replica is {say_short(replica)}, which is not a node and an index", mend, code="not-a-replica"
        )

    @classmethod
    def no_such_replica(cls, node: str, index: int, replicas: int) -> ExplainError:
        """The node has fewer replicas."""
        last = replicas - 1
        problem = (
            f"node {node!r} has no replica {_say_number(index)}: it is served by {replicas}, counted from 0"
        )
        mend = f"Ask for '{node}.0'" + (f" to '{node}.{last}'" if last else "")
        return cls(problem, mend, code="unknown-replica")

    @classmethod
    def not_served(cls, node: str, replica: str, served: Iterable[str]) -> ExplainError:
        """The replica does not serve the node."""
        mend = f"It serves {', '.join(served)}"
        return cls(f"replica {replica} does not serve node {node!r}", mend, code="not-served")

    @classmethod
    def mixed(cls, given: Iterable[str]) -> ExplainError:
        """Questions that have no answer together."""
        mend = (
            "Ask for one of node, edge, sample, replica; or for sample and one other; or for node and replica"
        )
        return cls(f"{' and '.join(given)} cannot be asked for together", mend, code="mixed-questions")

    @classmethod
    def low_limit(cls, limit: object) -> ExplainError:
        """``limit`` leaves no room for the first and the last."""
        return cls(
            f"limit is {say_short(limit)}",
            "Give a whole number of 2 or more, or None for all",
            code="low-limit",
        )


def _say_number(number: int) -> str:
    return f"{number:,}" if abs(number) < 2**63 else say_short(number)


def _rebuild(kind: type[ExplainError], problem: str, mend: str, code: str) -> ExplainError:
    return kind(problem, mend, code=code)
