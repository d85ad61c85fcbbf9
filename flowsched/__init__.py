"""flowsched: route batches through a graph of replicated models.

Declare a :class:`Graph` of :class:`Node` rows, :func:`compile` it into a :class:`Plan` to see which samples go to
which replica, and :func:`run` the plan, or :func:`start` a session, on any backend.
"""

from flowsched.batch import Batch, Padding, pads
from flowsched.check import check_plan as check
from flowsched.errors import FlowschedError
from flowsched.graph import Graph, Node
from flowsched.graph.files import load_graph, save_graph
from flowsched.plan import Plan, load_plan, parse_calls
from flowsched.planner import compile_plan as compile
from flowsched.runtime.context import Context, ReplicaContext
from flowsched.runtime.outputs import Outputs
from flowsched.session import Session, run, start

__all__ = [
    "Batch",
    "Context",
    "FlowschedError",
    "Graph",
    "Node",
    "Outputs",
    "Padding",
    "Plan",
    "ReplicaContext",
    "Session",
    "check",
    "compile",
    "load_graph",
    "load_plan",
    "pads",
    "parse_calls",
    "run",
    "save_graph",
    "start",
]
