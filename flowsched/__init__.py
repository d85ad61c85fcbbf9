"""flowsched: route batches through a graph of replicated models."""

from flowsched.graph import Graph, Node
from flowsched.plan import Plan
from flowsched.planner import compile_plan as compile

__all__ = ["Graph", "Node", "Plan", "compile"]
