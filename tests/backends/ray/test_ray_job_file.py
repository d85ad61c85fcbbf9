"""A job in a file that no process can import: what its workers raise is shown with the file and the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import raises_with_its_line

pytestmark = pytest.mark.timeout(200)


def test_a_worker_that_raises_in_an_actor_is_shown_with_its_line_in_the_job(tmp_path: Path) -> None:
    raises_with_its_line(tmp_path, "ray")
