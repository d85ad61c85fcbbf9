"""What a backend may lack, and how a session that needs it is refused."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from enum import StrEnum

from flowsched.errors import BackendError
from flowsched.events import Observer
from flowsched.graph import Graph


class Feature(StrEnum):
    """Something that a backend may declare in ``Backend.lacks``.

    A session that needs what its backend lacks is refused before anything starts; the conformance suite skips
    what it would need.
    """

    AFTER = "after"  # nodes that come after others without reading them
    SHARED_REPLICAS = "replicas_of"  # nodes that are served by the replicas of another
    ROWS = "expand, group and collapse"  # nodes that make more or fewer rows than they read
    OBSERVER = "observer"  # events told to an observer
    CANCELLATION = "cancellation"  # context.cancelled() tells a worker that its step is over
    DEVICES = "devices"  # replicas are given devices
    ISOLATION = "isolation"  # a replica that dies takes nothing else along


def refuse_lacking(name: str, lacks: Collection[Feature], graph: Graph, observer: Observer | None) -> None:
    """Refuse a session that needs what the backend called ``name`` lacks.

    Raises:
        BackendError: it names the backend, what it lacks, and the first thing that needs it.
    """
    for feature, user in _needed(graph, observer):
        if feature in lacks:
            raise BackendError(
                f"backend {name!r} lacks {feature.value!r}, which {user} needs. "
                "Leave that out, or choose a backend that has it"
            )


def _needed(graph: Graph, observer: Observer | None) -> Iterator[tuple[Feature, str]]:
    if observer is not None:
        yield Feature.OBSERVER, "observer="
    for node in graph:
        place = f"node {node.name!r} of graph {graph.name!r}"
        if node.after:
            yield Feature.AFTER, place
        if node.replicas_of is not None:
            yield Feature.SHARED_REPLICAS, place
        if node.expand > 1 or node.unit > 1:
            yield Feature.ROWS, place
