"""The planner: a chain of small pure passes from a graph to a plan."""

from flowsched.planner.compile import compile_plan

__all__ = ["compile_plan"]
