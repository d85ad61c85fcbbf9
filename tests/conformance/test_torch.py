"""The torch backend passes the conformance suite."""

from __future__ import annotations

from flowsched.testing import BackendSuite


class TestTorch(BackendSuite):
    """A rank takes some 50 ms to start."""

    backend = "torch"
    cuts = ((1, None), (1, 1), (3, 2), (4, 5))
    widest = 16
    examples = 8
    at_once = 8.0
