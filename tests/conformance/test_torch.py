"""The torch backend passes the conformance suite."""

from __future__ import annotations

from flowsched.testing import BackendSuite
from flowsched_torch import TorchBackend


class TestTorch(BackendSuite):
    """All tests share one backend, whose ranks are forked from one process that has torch loaded."""

    backend = TorchBackend()
    cuts = ((1, None), (1, 1), (3, 2), (4, 5))
    widest = 16
    examples = 8
    at_once = 8.0
