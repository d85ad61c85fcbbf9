"""Progress is a line for each node, with exact totals."""

from __future__ import annotations

from flowsched.cli.progress import Lines
from flowsched.events import CallEnded, ReplicaBuilt, StepEnded, StepStarted

STARTED = StepStarted(0, {"policy": 4, "reward": 1, "empty": 0}, {"policy": 16, "reward": 16, "empty": 0})


def ended(node: str, rows: int) -> CallEnded:
    return CallEnded(0, node, 0, 0, rows, 0.1)


def lines_at(*events: tuple[float, object]) -> list[str]:
    """Return the lines that events at these seconds lead to."""
    written: list[str] = []
    now = 0.0
    lines = Lines(written.append, lambda: now)
    for now, event in events:  # noqa: B007 (the clock reads it)
        lines(event)  # type: ignore[arg-type]
    return written


def test_each_node_gets_a_line_when_it_is_done() -> None:
    quick = [(0.1 * at, ended("policy", 4)) for at in range(1, 5)]
    assert lines_at((0, STARTED), *quick, (0.6, ended("reward", 16)), (0.7, StepEnded(0, 0.7))) == [
        "policy 4/4 calls, 16/16 rows",
        "reward 1/1 calls, 16/16 rows",
    ]


def test_a_node_at_work_gets_at_most_one_line_a_second() -> None:
    slow = [(at, ended("policy", 4)) for at in (0.4, 1.1, 1.9)]
    assert lines_at((0, STARTED), *slow) == ["policy 2/4 calls, 8/16 rows"]
    assert lines_at((0, STARTED), *slow, (2.2, ended("policy", 4)))[-1] == "policy 4/4 calls, 16/16 rows"


def test_what_is_no_progress_writes_nothing() -> None:
    assert (
        lines_at((0, ReplicaBuilt("policy", 0, 0.1)), (0, STARTED), (5, ReplicaBuilt("policy", 1, 0.1))) == []
    )
