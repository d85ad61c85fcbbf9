"""The plan itself: what it holds, its identity, and the ways to look into it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, overload

import numpy as np

from flowsched.errors import PlanError
from flowsched.graph import Graph
from flowsched.graph.rows import NodeRows, find_rows
from flowsched.plan.notation import Call, Feed, Fragment
from flowsched.plan.table import Int64, Table, seal

if TYPE_CHECKING:
    from flowsched.inspect.explanation import Explanation
    from flowsched.inspect.summary import NodeSummary
    from flowsched.programs import Placement, Programs

FORMAT_NAME = "flowsched-plan"
FORMAT_VERSION = 1


@dataclass(frozen=True, eq=False)
class Plan:
    """A graph compiled for one number of samples.

    Attributes:
        graph: the graph.
        samples: rows of the step's input.
        table: every call and fragment.
    """

    graph: Graph
    samples: int
    table: Table

    @cached_property
    def hash(self) -> str:
        """SHA-256 over the format version, the graph, the number of samples and the table's columns."""
        digest = hashlib.sha256(json.dumps(self.header(), sort_keys=True).encode())
        for name, column in self.table.columns():
            # The length keeps what ends one column from being taken for what begins the next.
            digest.update(f"\n{name} {len(column)}\n".encode())
            digest.update(np.ascontiguousarray(column, column.dtype.newbyteorder("<")).data)
        return digest.hexdigest()

    def header(self) -> dict[str, object]:
        """Return what identifies the plan beside its table: format version, graph and samples."""
        return {
            "format": FORMAT_NAME,
            "version": FORMAT_VERSION,
            "samples": self.samples,
            "graph": self.graph.to_dict(),
        }

    @cached_property
    def rows(self) -> dict[str, NodeRows]:
        """Rows that each node reads and makes for one sample.

        Raises:
            PlanError: the plan was not compiled, and its graph cannot be planned for its samples.
        """
        rows, problems = find_rows(self.graph, self.samples)
        if problems:
            raise PlanError(f"graph {self.graph.name!r} with {self.samples} samples", problems)
        return dict(rows)

    @cached_property
    def call_offsets(self) -> Int64:
        """(nodes + 1,) node ``i`` has the calls from ``call_offsets[i]`` to ``call_offsets[i + 1]``."""
        return seal(np.searchsorted(self.table.node, np.arange(len(self.graph.nodes) + 1)))

    @cached_property
    def feed_offsets(self) -> Int64:
        """(nodes + 1,) likewise for the feeds of node ``i``."""
        widths = [len(node.inputs) for node in self.graph.nodes]
        return seal(np.concatenate([[0], np.cumsum(np.diff(self.call_offsets) * widths)]))

    def __reduce__(self) -> tuple[type[Plan], tuple[Graph, int, Table]]:
        # Without what was derived, which is derived anew from the copy.
        return type(self), (self.graph, self.samples, self.table)

    def __getitem__(self, node: str) -> NodePlan:
        return NodePlan(self, self.graph.index(node))

    def __iter__(self) -> Iterator[NodePlan]:
        return (NodePlan(self, index) for index in range(len(self.graph.nodes)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        sizes = f"{self.samples} samples, {self.table.calls} calls"
        return f"<Plan {self.graph.name}: {sizes}, hash {self.hash[:12]}>"

    # What a plan is shown with stands above it and is loaded only when it is asked for.

    def __str__(self) -> str:
        from flowsched.inspect.text import render_plan

        return render_plan(self)

    def _repr_html_(self) -> str:
        from flowsched.inspect.notebook import plan_html

        return plan_html(self)

    def explain(
        self,
        *,
        node: str | None = None,
        edge: str | tuple[str, str] | None = None,
        sample: int | None = None,
        replica: str | tuple[str, int] | None = None,
        limit: int | None = 12,
    ) -> Explanation:
        """Answer a question about the plan; see :func:`flowsched.inspect.explain.explain`.

        Args:
            node: name of a node: the arithmetic of its split, and why it is so.
            edge: ``"policy->reward"`` or ``("policy", "reward")``: how the producer's calls are divided.
            sample: a sample id: where it goes, node by node.
            replica: ``"policy.1"`` or ``("policy", 1)``: its queue.
            limit: the most calls or fragments that are listed; None lists all.

        Raises:
            ExplainError: there is no such node, edge, sample or replica, or no answer to all of them together.
        """
        from flowsched.inspect.explain import explain

        return explain(self, node=node, edge=edge, sample=sample, replica=replica, limit=limit)

    def summary(self) -> tuple[NodeSummary, ...]:
        """Return the numbers of each node, in the order in which the graph declares them."""
        from flowsched.inspect.summary import summarise

        return summarise(self)

    def programs(
        self,
        ranks: int | None = None,
        *,
        home: int | None = None,
        placement: Placement | None = None,
        rendezvous: bool = False,
    ) -> Programs:
        """Lower the plan to one program for each rank: what it receives, runs and sends.

        Args:
            ranks: how many ranks serve the replicas, which are dealt to them in turn; None for one a replica.
            home: the rank that holds the step's inputs and receives its outputs; None for one more that
                serves no replica.
            placement: which rank serves which replica, in place of ``ranks`` and ``home``.
            rendezvous: an order that is safe even where every send waits for its receiver, as NCCL's may.

        Raises:
            PlacementError: there are no such ranks, or the placement is that of another graph.

        >>> import flowsched as fs
        >>> nodes = [fs.Node("a", inputs=["x"], replicas=2), fs.Node("b", inputs=["a"])]
        >>> plan = fs.compile(fs.Graph("two", sources=["x"], nodes=nodes), samples=4)
        >>> print(plan.programs(ranks=2, home=0)[1])
        RECV x[2:4] from rank 0 for a.1.0
        RUN  a.1.0[2:4]
        SEND a.1.0[2:4] to rank 0 for b.0.0
        """
        from flowsched.programs.lower import lower_plan
        from flowsched.programs.placement import choose_placement

        return lower_plan(self, choose_placement(self.graph, ranks, home, placement), rendezvous=rendezvous)

    def to_mermaid(self) -> str:
        """Return the graph as a Mermaid flowchart, with the plan's numbers on its nodes and edges."""
        from flowsched.inspect.diagrams import to_mermaid

        return to_mermaid(self)

    def to_dot(self) -> str:
        """Return the graph in Graphviz's DOT, with the plan's numbers on its nodes and edges."""
        from flowsched.inspect.diagrams import to_dot

        return to_dot(self)

    def to_json(self) -> str:
        """Return the plan as the text of a ``.json`` plan file."""
        from flowsched.plan.files import plan_to_json  # it makes plans

        return plan_to_json(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the plan to a ``.json`` or ``.npz`` file, which ``load_plan`` reads.

        Raises:
            PlanFileError: the suffix is another, or the file cannot be written.
        """
        from flowsched.plan.files import save_plan

        save_plan(self, path)

    def call(self, number: int) -> Call:
        """Return the call with this number (its place in the table) in the form that prints and parses."""
        table, index = self.table, int(self.table.node[number])
        node, rows = self.graph.nodes[index], self.rows[self.graph.nodes[index].name]
        first = int(self.feed_offsets[index] + (number - self.call_offsets[index]) * len(node.inputs))
        feeds = tuple(
            Feed(tuple(self.fragment(at) for at in range(table.feed[feed], table.feed[feed + 1])), times)
            for feed, times in enumerate(rows.times, first)
        )
        return Call(
            node.name, int(table.replica[number]), int(table.position[number]), *self.made_rows(number), feeds
        )

    def made_rows(self, number: int) -> tuple[int, int]:
        """Return the half-open range of rows that the call with this number makes."""
        node = self.graph.nodes[self.table.node[number]]
        start, stop = int(self.table.start[number]), int(self.table.stop[number])
        return start // node.collapse * node.expand, stop // node.collapse * node.expand

    def samples_of(self, number: int) -> tuple[int, int]:
        """Return the half-open range of sample ids of the rows that the call with this number reads."""
        rows = self.rows[self.graph.nodes[self.table.node[number]].name]
        return rows.samples_of(int(self.table.start[number]), int(self.table.stop[number]))

    def fragment(self, at: int) -> Fragment:
        """Return the fragment with this number (its place in the table) in the form that prints and parses."""
        table = self.table
        producer = int(table.producer[at])
        rows = int(table.fragment_start[at]), int(table.fragment_stop[at])
        if producer < 0:
            return Fragment(self.graph.sources[-1 - producer], *rows)
        node = self.graph.nodes[table.node[producer]].name
        return Fragment(f"{node}.{table.replica[producer]}.{table.position[producer]}", *rows)


@dataclass(frozen=True)
class NodePlan:
    """The calls of one node of a plan; prints in call notation.

    Attributes:
        plan: the plan.
        index: index of the node in ``plan.graph.nodes``.
    """

    plan: Plan
    index: int

    @property
    def name(self) -> str:
        """Name of the node."""
        return self.plan.graph.nodes[self.index].name

    @property
    def numbers(self) -> range:
        """Numbers of the node's calls in the table."""
        return range(*(int(at) for at in self.plan.call_offsets[self.index : self.index + 2]))

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[Call]:
        return map(self.plan.call, self.numbers)

    @overload
    def __getitem__(self, at: int) -> Call: ...

    @overload
    def __getitem__(self, at: slice) -> list[Call]: ...

    def __getitem__(self, at: int | slice) -> Call | list[Call]:
        numbers = self.numbers[at]
        return list(map(self.plan.call, numbers)) if isinstance(numbers, range) else self.plan.call(numbers)

    def __repr__(self) -> str:
        return f"<NodePlan {self.name}: {len(self)} calls>"

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    def _repr_html_(self) -> str:
        from flowsched.inspect.notebook import calls_html

        return calls_html(self)
