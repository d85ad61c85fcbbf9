"""How to see more of a plan, as options and commands."""

from __future__ import annotations


class CommandHints:
    """For the graph or plan that ``flowsched plan`` and ``flowsched explain`` are about."""

    def print_calls(self, node: str) -> str:
        """How to print all calls of a node."""
        return f"plan --node {node}"

    def list_all(self, node: str) -> str:  # noqa: ARG002 (it is the node that is explained)
        """How to have all calls of a node in its explanation."""
        return "--all"

    def explain_node(self, node: str) -> str:
        """How to have a node explained."""
        return f"explain --node {node}"

    def explain_sample(self, sample: int) -> str:
        """How to have it explained where a sample goes."""
        return f"explain --sample {sample}"


COMMAND_HINTS = CommandHints()
