"""The torch backend passes the conformance suite."""

from __future__ import annotations

from flowsched_torch import TorchBackend

from flowsched.testing import BackendSuite


class TestTorch(BackendSuite):
    """All tests share one backend, whose ranks are forked from one process that has torch loaded."""

    backend = TorchBackend()
    required = True
    patience = {"grace": 20.0}  # noqa: RUF012 - the suite only reads it
    cuts = ((1, None), (3, 2), (4, 5))
    widest = 16
    examples = 4
    at_once = 8.0
