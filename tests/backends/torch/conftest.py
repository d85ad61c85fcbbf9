"""One backend for all tests of local ranks, so that torch is loaded once."""

from __future__ import annotations

import pytest
from flowsched_torch import TorchBackend


@pytest.fixture(scope="session")
def local() -> TorchBackend:
    """A backend that starts ranks on this machine."""
    return TorchBackend(start="local")
