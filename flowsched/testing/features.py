"""What a backend lacks it declares, and a session that needs it is refused before anything starts."""

from __future__ import annotations

from typing import Any

import pytest

import flowsched as fs
from flowsched.backend import Feature
from flowsched.errors import BackendError
from flowsched.testing.base import Suite
from flowsched.testing.workers import rows


def _graph(**second: Any) -> fs.Graph:
    return fs.Graph("two", ["x"], [fs.Node("a", ["x"]), fs.Node("b", ["x"], **second)])


_PASS = {"a": rows.pass_on, "b": rows.pass_on}
_ONLY_A = {"a": rows.pass_on}


class FeatureTests(Suite):
    """``Backend.lacks``."""

    @pytest.mark.parametrize(
        ("feature", "graph", "models"),
        [
            (Feature.AFTER, _graph(after=["a"]), _PASS),
            (Feature.SHARED_REPLICAS, _graph(replicas_of="a"), _ONLY_A),
            (Feature.ROWS, _graph(expand=2), _PASS),
            (Feature.ROWS, _graph(group=2), _PASS),
            (Feature.ROWS, _graph(collapse=2), _PASS),
        ],
    )
    def test_a_graph_that_needs_a_feature_starts_or_is_refused_with_both_names(
        self, feature: Feature, graph: fs.Graph, models: dict[str, Any]
    ) -> None:
        kind = self.kind()
        if feature not in kind.lacks:
            self.start(graph, models).close()
            return
        with pytest.raises(BackendError) as caught:
            self.start(graph, models)
        for part in (kind.name, feature.value, "node 'b'"):
            assert part in str(caught.value)

    def test_an_observer_is_told_or_refused_with_both_names(self) -> None:
        kind = self.kind()
        if Feature.OBSERVER not in kind.lacks:
            self.start(_graph(), _PASS, observer=print).close()
            return
        with pytest.raises(BackendError) as caught:
            self.start(_graph(), _PASS, observer=print)
        for part in (kind.name, Feature.OBSERVER.value):
            assert part in str(caught.value)

    def test_an_option_that_the_backend_does_not_have_is_refused(self) -> None:
        if not isinstance(self.backend, str):
            with pytest.raises(BackendError, match="already made"):
                self.start(_graph(), _PASS, no_such_option=1)
            return
        with pytest.raises(BackendError, match="has no option 'no_such_option'"):
            self.start(_graph(), _PASS, no_such_option=1)
