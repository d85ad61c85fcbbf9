"""What replicas in several processes made, compared: all calls of a node make the same columns."""

from __future__ import annotations

from collections.abc import Mapping

from flowsched.backend import Program, Seen, Step

FirstCalls = Mapping[int, Mapping[int, int]]
"""By index of a node that has calls and index of the replica, the first call of the node there."""


class Told:
    """By node and replica, what each replica told last of what it makes: it outlives a step, as news is told."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, int], Seen] = {}

    def take(self, node: int, replica: int, seen: Seen) -> None:
        """Take note of what a replica tells."""
        self._seen[node, replica] = seen

    def compare(self, step: Step, first_calls: FirstCalls) -> None:
        """Compare what all replicas that had calls in a step made, once all have ended.

        Raises:
            OutputError: two of them made different columns.
        """
        for node, calls in first_calls.items():
            found = [self._seen[node, replica] for replica in calls]
            first = found[0].structure
            if any(seen.uneven or seen.structure != first for seen in found):
                self.compare_node(step, node, calls)

    def compare_node(self, step: Step, node: int, calls: Mapping[int, int]) -> None:
        """Compare what the replicas of one node made, as far as it is known.

        Raises:
            OutputError: likewise.
        """
        name = step.plan.graph.nodes[node].name
        for replica, call in calls.items():
            if (seen := self._seen.get((node, replica))) is not None:
                step.meet({name: Seen(seen.structure, call, seen.uneven)})


def find_first_calls(program: Program) -> FirstCalls:
    """Return the first call of each node in each replica."""
    found: dict[int, dict[int, int]] = {}
    replica, sequence = program.plan.table.replica, program.plan.table.sequence
    for node, own in enumerate(program.numbers):
        for call in sorted(own, key=lambda call: int(sequence[call])):
            found.setdefault(node, {}).setdefault(int(replica[call]), call)
    return found
