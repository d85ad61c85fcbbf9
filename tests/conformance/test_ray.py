"""The Ray backend passes the conformance suite."""

from __future__ import annotations

from flowsched.testing import BackendSuite


class TestRay(BackendSuite):
    """A replica takes about a second to start, so that few are, and few examples are tried."""

    backend = "ray"
    cuts = ((1, None), (3, 2))
    widest = 8
    examples = 2
    at_once = 15.0
    time_limit = 110.0
