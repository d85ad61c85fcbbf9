"""The graph as a picture: Mermaid and DOT, with a plan's numbers where there is a plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from flowsched.graph import Graph, Node
from flowsched.inspect.arithmetic import count
from flowsched.inspect.explain_edge import fragments_of_edge
from flowsched.inspect.summary import NodeSummary, summarise
from flowsched.plan import Plan


@dataclass(frozen=True)
class Box:
    """A source or node.

    Attributes:
        id: a name for it that is legal everywhere, unlike the names of nodes (``end``, ``a-b``).
        lines: what is written in it.
        kind: ``source``, ``node``, or ``output`` for a node whose batch comes back.
    """

    id: str
    lines: tuple[str, ...]
    kind: str


@dataclass(frozen=True)
class Arrow:
    """What one node reads or waits for.

    Attributes:
        start, stop: ids of the boxes that it joins.
        label: what is written on it; may be empty.
        control: it orders nodes (``after``) and carries no rows.
    """

    start: str
    stop: str
    label: str
    control: bool


def to_mermaid(shown: Graph | Plan) -> str:
    """Return a graph, or a plan, as a Mermaid flowchart.

    >>> import flowsched as fs
    >>> print(to_mermaid(fs.Graph("one", ["x"], [fs.Node("end", inputs=["x"], replicas=2)])), end="")
    flowchart LR
      s0(["x"])
      n0["end<br/>2 replicas"]
      s0 --> n0
      classDef output stroke-width:3px
      class n0 output
    """
    shapes = {"source": '(["{}"])', "node": '["{}"]', "output": '["{}"]'}
    boxes, arrows = list(_boxes(shown)), list(_arrows(shown))
    lines = ["flowchart LR"]
    for box in boxes:
        text = "<br/>".join(mermaid_text(line) for line in box.lines)
        lines.append(f"  {box.id}{shapes[box.kind].format(text)}")
    for arrow in arrows:
        line = "-.->" if arrow.control else "-->"
        label = f'|"{mermaid_text(arrow.label)}"|' if arrow.label else ""
        lines.append(f"  {arrow.start} {line}{label} {arrow.stop}")
    outputs = ",".join(box.id for box in boxes if box.kind == "output")
    lines += ["  classDef output stroke-width:3px", f"  class {outputs} output"]
    return "\n".join(lines) + "\n"


def to_dot(shown: Graph | Plan) -> str:
    """Return a graph, or a plan, in Graphviz's DOT.

    >>> import flowsched as fs
    >>> print(to_dot(fs.Graph("one", ["x"], [fs.Node("end", inputs=["x"], replicas=2)])), end="")
    digraph "one" {
      rankdir=LR
      node [shape=box]
      s0 [label="x", shape=oval]
      n0 [label="end\\n2 replicas", penwidth=3]
      s0 -> n0
    }
    """
    extra = {"source": ", shape=oval", "node": "", "output": ", penwidth=3"}
    graph = shown.graph if isinstance(shown, Plan) else shown
    lines = [f'digraph "{dot_text(graph.name)}" {{', "  rankdir=LR", "  node [shape=box]"]
    for box in _boxes(shown):
        text = "\\n".join(dot_text(line) for line in box.lines)
        lines.append(f'  {box.id} [label="{text}"{extra[box.kind]}]')
    for arrow in _arrows(shown):
        settings = [f'label="{dot_text(arrow.label)}"'] if arrow.label else []
        settings += ["style=dashed"] if arrow.control else []
        lines.append(f"  {arrow.start} -> {arrow.stop}" + (f" [{', '.join(settings)}]" if settings else ""))
    return "\n".join([*lines, "}"]) + "\n"


def _boxes(shown: Graph | Plan) -> Iterator[Box]:
    graph = shown.graph if isinstance(shown, Plan) else shown
    summaries = summarise(shown) if isinstance(shown, Plan) else None
    for i, name in enumerate(graph.sources):
        rows = [count(shown.samples, "row")] if isinstance(shown, Plan) else []
        yield Box(f"s{i}", (name, *rows), "source")
    for i, node in enumerate(graph.nodes):
        lines = _declared(graph, node) if summaries is None else _planned(node, summaries[i])
        yield Box(f"n{i}", (node.name, *lines), "output" if node.name in graph.outputs else "node")


def _declared(graph: Graph, node: Node) -> Iterator[str]:
    owner = graph.owner(node.name)
    whose = "" if owner.name == node.name else f" of {owner.name}"
    yield f"{count(owner.replicas, 'replica')}{whose}"
    if node.batch_size is not None:
        yield f"batch size {node.batch_size:,}"
    for field in ("expand", "group", "collapse"):
        if getattr(node, field) > 1:
            yield f"{field} {getattr(node, field):,}"


def _planned(node: Node, summary: NodeSummary) -> Iterator[str]:
    whose = "" if summary.owner == node.name else f" of {summary.owner}"
    idle = f", {summary.idle:,} idle" if summary.idle else ""
    yield f"{count(summary.replicas, 'replica')}{whose}{idle}"
    largest = f", at most {count(summary.largest_call, 'row')}" if summary.calls else ""
    yield f"{count(summary.calls, 'call')}{largest}"


def _arrows(shown: Graph | Plan) -> Iterator[Arrow]:
    graph = shown.graph if isinstance(shown, Plan) else shown
    ids = {name: f"s{i}" for i, name in enumerate(graph.sources)}
    ids |= {node.name: f"n{i}" for i, node in enumerate(graph.nodes)}
    for index, node in enumerate(graph.nodes):
        for place, name in enumerate(node.inputs):
            label = _edge_label(shown, index, place) if isinstance(shown, Plan) else ""
            yield Arrow(ids[name], ids[node.name], label, control=False)
        for name in node.after:
            yield Arrow(ids[name], ids[node.name], "after", control=True)


def _edge_label(plan: Plan, consumer: int, place: int) -> str:
    rows = plan.rows[plan.graph.nodes[consumer].name]
    read = int(rows.read * plan.samples) // rows.times[place]
    fragments = len(fragments_of_edge(plan, consumer, place).fragment)
    return f"{count(read, 'row')}, {count(fragments, 'fragment')}"


def mermaid_text(text: str) -> str:
    """Return text so that it stands for itself between double quotes in Mermaid.

    >>> mermaid_text('a "b" & c')
    'a #quot;b#quot; #amp; c'
    """
    for char, name in (("#", "#35;"), ("&", "#amp;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;")):
        text = text.replace(char, name)
    return text


def dot_text(text: str) -> str:
    """Return text so that it stands for itself between double quotes in DOT.

    >>> print(dot_text('a "b"'))
    a \\"b\\"
    """
    return text.replace("\\", "\\\\").replace('"', '\\"')
