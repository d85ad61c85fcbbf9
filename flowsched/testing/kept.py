"""One session for several tests that differ only in the data: on some backends, replicas are dear to start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import flowsched as fs


class KeptSession:
    """The session of the graph and the models that were run last; others end it.

    Args:
        start: starts a session of a graph and its models.
        running: returns what runs now.

    Attributes:
        own: what the session has running, which no test has left behind.
    """

    def __init__(
        self, start: Callable[[fs.Graph, Mapping[str, Any]], fs.Session], running: Callable[[], set[object]]
    ) -> None:
        self._start = start
        self._running = running
        self._key: tuple[fs.Graph, Mapping[str, Any]] | None = None
        self._session: fs.Session | None = None
        self.own: set[object] = set()
        self._remembered: dict[str, Any] = {}

    def run(self, graph: fs.Graph, models: Mapping[str, Any], inputs: Mapping[str, Any]) -> fs.Outputs:
        """Run one step; in the session of the test before, if that had the same graph and models."""
        if self._session is None or self._key != (graph, models):
            self.close()
        before = self._running()
        try:
            if self._session is None:
                self._session = self._start(graph, models)
                self._key = graph, models
            return self._session.run(inputs)
        except BaseException:
            self.close()  # a session is over after a failure; the next test has one of its own
            raise
        finally:
            self.own |= self._running() - before

    def remember(self, name: str, make: Callable[[], Any]) -> Any:
        """Return what ``make`` returned the first time: for a step at whose outcome several tests look."""
        if name not in self._remembered:
            self._remembered[name] = make()
        return self._remembered[name]

    def close(self) -> None:
        """End the session, if there is one."""
        if self._session is not None:
            self._session.close()
        self._session, self.own = None, set()
