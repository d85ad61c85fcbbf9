"""What tests of graphs share: the weights of the language model, converted once."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def weights() -> Iterator[str]:
    """A folder for FLOWSCHED_CACHE, in which the first job that needs the weights puts them."""
    with tempfile.TemporaryDirectory() as folder:  # 540 MB, which pytest's own folders would keep for days
        yield folder
