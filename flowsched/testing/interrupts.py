"""Ctrl-C in the middle of a step ends the program at once, as KeyboardInterrupt."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from flowsched.backend import Feature
from flowsched.testing.base import Suite, needs
from flowsched.testing.workers import meeting as meetings

_START = """
import signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background ignores it
from functools import partial
from pathlib import Path
import numpy as np
import flowsched as fs
from flowsched.testing.workers import meeting, rows
folder = Path(sys.argv[1])
graph = fs.Graph("one", ["x"], [fs.Node("a", ["x"], replicas=3, batch_size=2), fs.Node("b", ["a"])])
inputs = {"x": np.arange(12)}
models = {"a": partial(getattr(meeting, sys.argv[2]), folder=folder), "b": rows.pass_on}
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a child cannot be sent Ctrl-C alone there")
class InterruptTests(Suite):
    """Programs that are interrupted."""

    @contextmanager
    def _program(
        self, text: str, folder: Path, worker: str, options: Mapping[str, Any] | None = None
    ) -> Iterator[subprocess.Popen[str]]:
        """Run a program in a process of its own, which does not outlive the test."""
        code = _START + self.in_a_program(options or {}) + "\n" + dedent(text)
        with subprocess.Popen(
            [sys.executable, "-c", code, str(folder), worker],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def _interrupt(self, process: subprocess.Popen[str]) -> tuple[str, str]:
        process.send_signal(signal.SIGINT)
        return process.communicate(timeout=20 + self.at_once)

    def test_an_interrupted_program_ends_although_its_workers_do_not(self, meeting: Path) -> None:
        text = "fs.run(fs.compile(graph, 12), models, inputs, backend=backend, **options)"
        with self._program(text, meeting, "hold") as process:
            assert meetings.wait_for_arrivals(meeting, "held", 3), process.communicate(timeout=1)
            began = time.monotonic()
            _, errors = self._interrupt(process)
        assert time.monotonic() - began < 10 + self.at_once
        assert process.returncode == -signal.SIGINT
        assert errors.rstrip().endswith("KeyboardInterrupt")

    @needs(Feature.CANCELLATION)
    def test_workers_that_ask_end_before_the_interruption_is_raised(self, meeting: Path) -> None:
        text = """
            before = {*threading.enumerate()}
            try:
                fs.run(fs.compile(graph, 12), models, inputs, backend=backend, **options)
            except KeyboardInterrupt:
                print("cancelled:", meeting.arrivals(folder, "cancelled"))
                print("left:", [thread.name for thread in {*threading.enumerate()} - before])
        """
        with self._program(text, meeting, "hold_until_cancelled", self.patience) as process:
            assert meetings.wait_for_arrivals(meeting, "held", 3)
            output, errors = self._interrupt(process)
        assert "cancelled: 3\n" in output, errors
        if Feature.ISOLATION in self.kind().lacks:  # replicas are in the program itself
            assert output.endswith("left: []\n")
        assert "Traceback" not in errors

    def test_constructors_can_be_interrupted(self, meeting: Path) -> None:
        text = "fs.start(graph, models, backend=backend, **options)"
        with self._program(text, meeting, "HeldWhileBuilt") as process:
            assert meetings.wait_for_arrivals(meeting, "held", 3)
            _, errors = self._interrupt(process)
        assert process.returncode == -signal.SIGINT
        assert errors.rstrip().endswith("KeyboardInterrupt")

    def test_an_interrupted_session_is_over_and_another_one_works(self, meeting: Path) -> None:
        text = """
            session = fs.start(graph, models, backend=backend, **options)
            try:
                session.run(inputs)
            except KeyboardInterrupt:
                print(session)
                session.close()
            meeting.release(folder)
            with fs.start(graph, models, backend=backend, **options) as session:
                print(session.run(inputs)["b"].tolist() == list(range(12)))
        """
        with self._program(text, meeting, "hold") as process:
            assert meetings.wait_for_arrivals(meeting, "held", 3)
            output, errors = self._interrupt(process)
        assert output.endswith("<Session of one: over: step 0 failed with KeyboardInterrupt>\nTrue\n"), errors
        assert "Traceback" not in errors
        assert process.returncode == 0
