"""How to see more of a plan, in the words of whoever looks at it: of Python, or of the command line."""

from __future__ import annotations

from typing import Protocol

MOST_PRINTED = 1_000
"""Calls that someone may want to see all at once; nobody is invited to print more."""


class Hints(Protocol):
    """How to ask for more, each as a few words that can be typed."""

    def print_calls(self, node: str) -> str:
        """How to print all calls of a node."""

    def list_all(self, node: str) -> str:
        """How to have all calls of a node in its explanation."""

    def explain_node(self, node: str) -> str:
        """How to have a node explained."""

    def explain_sample(self, sample: int) -> str:
        """How to have it explained where a sample goes."""


class PythonHints:
    """For ``plan``, as it is called in Python."""

    def print_calls(self, node: str) -> str:
        """How to print all calls of a node."""
        return f"print(plan[{node!r}])"

    def list_all(self, node: str) -> str:
        """How to have all calls of a node in its explanation."""
        return self.print_calls(node)

    def explain_node(self, node: str) -> str:
        """How to have a node explained."""
        return f"plan.explain(node={node!r})"

    def explain_sample(self, sample: int) -> str:
        """How to have it explained where a sample goes."""
        return f"plan.explain(sample={sample})"


PYTHON_HINTS = PythonHints()
