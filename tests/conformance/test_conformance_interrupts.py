"""Ctrl-C in the middle of a step ends the program at once, as KeyboardInterrupt."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

import pytest

from tests.conformance import odd_workers as odd

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.timeout(90),
    pytest.mark.skipif(sys.platform == "win32", reason="a child cannot be sent Ctrl-C alone there"),
]

_START = """
    import signal, sys, threading
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background ignores it
    from functools import partial
    from pathlib import Path
    import numpy as np
    import flowsched as fs
    from tests.conformance import odd_workers as odd, row_workers as rows
    folder, backend = Path(sys.argv[1]), sys.argv[2]
    graph = fs.Graph("one", ["x"], [fs.Node("a", ["x"], replicas=3, batch_size=2), fs.Node("b", ["a"])])
    inputs = {"x": np.arange(12)}
    patience = {"grace": 20.0} if backend == "threads" else {}
    models = {"a": partial(getattr(odd, sys.argv[3]), folder=folder), "b": rows.pass_on}
"""


@contextmanager
def _program(text: str, folder: Path, backend: str, worker: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program in a process of its own, which does not outlive the test."""
    code = dedent(_START) + dedent(text)
    with subprocess.Popen(
        [sys.executable, "-c", code, str(folder), backend, worker],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _interrupt(process: subprocess.Popen[str]) -> tuple[str, str]:
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=20)


def test_an_interrupted_program_ends_although_its_workers_do_not(backend: str, meeting: Path) -> None:
    text = "fs.run(fs.compile(graph, 12), models, inputs, backend=backend)"
    with _program(text, meeting, backend, "hold") as process:
        odd.wait_for_arrivals(meeting, "held", 3)
        began = time.monotonic()
        _, errors = _interrupt(process)
    assert time.monotonic() - began < 15
    assert process.returncode == -signal.SIGINT
    assert errors.rstrip().endswith("KeyboardInterrupt")


def test_workers_that_ask_end_before_the_interruption_is_raised(backend: str, meeting: Path) -> None:
    text = """
        try:
            fs.run(fs.compile(graph, 12), models, inputs, backend=backend, **patience)
        except KeyboardInterrupt:
            print([thread.name for thread in threading.enumerate()])
    """
    with _program(text, meeting, backend, "hold_until_cancelled") as process:
        odd.wait_for_arrivals(meeting, "held", 3)
        output, errors = _interrupt(process)
    assert (output, errors) == ("['MainThread']\n", "")
    assert len(list(meeting.glob("cancelled-*"))) == 3


def test_constructors_can_be_interrupted(backend: str, meeting: Path) -> None:
    text = "fs.start(graph, models, backend=backend)"
    with _program(text, meeting, backend, "HeldWhileBuilt") as process:
        odd.wait_for_arrivals(meeting, "held", 3)
        _, errors = _interrupt(process)
    assert process.returncode == -signal.SIGINT
    assert errors.rstrip().endswith("KeyboardInterrupt")


def test_an_interrupted_session_is_over_and_another_one_works(backend: str, meeting: Path) -> None:
    text = """
        session = fs.start(graph, models, backend=backend)
        try:
            session.run(inputs)
        except KeyboardInterrupt:
            print(session)
            session.close()
        (folder / "release").touch()
        with fs.start(graph, models, backend=backend) as session:
            print(session.run(inputs)["b"].tolist() == list(range(12)))
    """
    with _program(text, meeting, backend, "hold") as process:
        odd.wait_for_arrivals(meeting, "held", 3)
        output, errors = _interrupt(process)
    assert (output, errors) == ("<Session of one: over: step 0 failed with KeyboardInterrupt>\nTrue\n", "")
    assert process.returncode == 0
