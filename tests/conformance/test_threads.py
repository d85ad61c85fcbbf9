"""The threads backend passes the conformance suite."""

from __future__ import annotations

from flowsched.testing import BackendSuite


class TestThreads(BackendSuite):
    """Replicas are cheap here: the suite's own numbers do."""

    backend = "threads"
    required = True
    patience = {"grace": 20.0}  # noqa: RUF012 - the suite only reads it
