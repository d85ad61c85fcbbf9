"""What is wrong with where replicas are placed."""

from __future__ import annotations

from flowsched.errors import ProblemsError


class PlacementError(ProblemsError):
    """Ranks that cannot serve the replicas of a graph."""

    code = "placement"
