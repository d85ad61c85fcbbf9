"""What the workers of a step told: calls, replicas that had none, samples lost or served twice."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers.jobs import Job


@dataclass(frozen=True)
class Told:
    """One step as its workers saw it.

    Attributes:
        calls: number of calls, over all nodes.
        largest: by node, rows of its largest call.
        idle: replicas without a call, over all nodes.
        lost: samples that did not pass a node, over all nodes.
        repeated: rows beyond the first of their sample, over all nodes: padding or repeats.
        seconds: from the begin of the first call to the end of the last.
    """

    calls: int
    largest: dict[str, int]
    idle: int
    lost: int
    repeated: int
    seconds: float

    def __str__(self) -> str:
        parts = [f"{self.calls} calls", f"{self.idle} replicas idle", f"{self.lost} samples lost"]
        return ", ".join([*parts, f"{self.repeated} padded or repeated"])


def read_told(job: Job, folder: Path) -> Told:
    """Read what the workers of one step told into ``folder``.

    Raises:
        RuntimeError: a node told nothing.
    """
    by_node = {node.name: list(_read_node(folder, node.name)) for node in job.graph}
    silent = [name for name, replicas in by_node.items() if not replicas]
    if silent:
        raise RuntimeError(f"no call of node {silent[0]!r} was told")
    rows = {name: Counter(_samples(replicas)) for name, replicas in by_node.items()}
    calls = [call for replicas in by_node.values() for replica in replicas for call in replica]
    return Told(
        calls=len(calls),
        largest={
            name: max(len(call["samples"]) for replica in replicas for call in replica)
            for name, replicas in by_node.items()
        },
        idle=sum(node.replicas - len(by_node[node.name]) for node in job.graph),
        lost=sum(job.samples - len(counted) for counted in rows.values()),
        repeated=sum(counted.total() - len(counted) for counted in rows.values()),
        seconds=max(call["ended"] for call in calls) - min(call["began"] for call in calls),
    )


def _read_node(folder: Path, node: str) -> Iterable[list[dict[str, Any]]]:
    """Yield the calls of each replica that has told any."""
    for path in sorted(folder.glob(f"{node}-*")):
        yield [json.loads(line) for line in path.read_text().splitlines()]


def _samples(replicas: Iterable[list[dict[str, Any]]]) -> Iterable[int]:
    return (sample for replica in replicas for call in replica for sample in call["samples"])
