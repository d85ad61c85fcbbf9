"""A run's time is told in two: what starting the replicas took, and what the step did."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from flowsched_threads import ThreadsBackend

from flowsched.backend import Feature
from flowsched.cli.timing import Timing
from flowsched.events import Event, ReplicaBuilt, StepEnded, StepStarted
from tests.cli.command_line import JOB, Cli

SLOW = JOB.replace(
    "class Policy:\n",
    "import time\n\n\nclass Policy:\n    def __init__(self):\n        time.sleep(1.0)\n\n",
)


def test_time_is_taken_from_events_which_are_passed_on() -> None:
    clock, heard = iter([10.0, 12.5]), list[Event]()
    timing = Timing(heard.append, lambda: next(clock))
    events: list[Event] = [
        ReplicaBuilt("a", 0, 2.0),
        ReplicaBuilt("a", 1, 2.0),
        StepStarted(0, {}, {}),
        StepEnded(0, 0.25),
    ]
    for event in events:
        timing(event)
    assert heard == events
    assert str(timing) == "started 2 replicas in 2.500 s, ran in 0.250 s"


def test_one_replica_is_not_told_as_several() -> None:
    timing = Timing(lambda _: None)
    timing(ReplicaBuilt("a", 0, 2.0))
    timing(StepStarted(0, {}, {}))
    assert str(timing).startswith("started 1 replica in ")


def test_a_slow_constructor_is_no_part_of_the_step(cli: Cli, folder: Path) -> None:
    (folder / "slow.py").write_text(SLOW)
    found = cli("run", "slow.py", "--json").json
    assert found["replicas"] == 5
    assert found["start_seconds"] >= 1.0 > found["seconds"] > 0.0


def test_the_summary_says_both(cli: Cli) -> None:
    line = cli("run", "job.py").out.splitlines()[3]
    assert re.fullmatch(
        r"5 samples, 8 calls on threads: started 5 replicas in \d+\.\d{3} s, ran in \d+\.\d{3} s", line
    )


def test_a_backend_without_events_runs_jobs_and_all_time_is_told_as_one(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ThreadsBackend, "lacks", frozenset({Feature.OBSERVER}))
    line = cli("run", "job.py").out.splitlines()[3]
    assert re.fullmatch(r"5 samples, 8 calls on threads: started and ran in \d+\.\d{3} s", line)
    found = cli("run", "job.py", "--json").json
    assert (found["replicas"], found["start_seconds"]) == (None, None)
    assert found["seconds"] > 0.0
