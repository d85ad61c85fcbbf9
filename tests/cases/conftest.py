"""What the reported cases run on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from flowsched.backend import Backend
from tests.each_backend import BACKENDS, backend_named


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Iterator[str | Backend]:
    """Each of the backends, shared by the tests of a module."""
    with backend_named(request.param) as made:
        yield made
