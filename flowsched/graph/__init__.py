"""What the user declares: nodes, their replicas and batch sizes, and how data runs between them."""

from flowsched.graph.declaration import Graph, Node

__all__ = ["Graph", "Node"]
