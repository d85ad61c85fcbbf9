"""More replicas than the machine can hold threads for are refused before one is started."""

from __future__ import annotations

import resource
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flowsched_threads import ThreadsBackend, capacity

import flowsched as fs
from flowsched.errors import CapacityError

GRAPH = fs.Graph(
    "wide", ["x"], [fs.Node("a", ["x"], replicas=50, batch_size=1), fs.Node("b", ["a"], replicas=10)]
)


class NeverBuilt:
    """Fails the test when it is built."""

    def __init__(self) -> None:
        pytest.fail("a replica was built although the machine cannot hold all of them")

    def __call__(self, batch: Any) -> Any:
        return batch


def _same(batch: Any) -> Any:
    return batch


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the threads whose start was asked for."""
    names: list[str] = []
    start = threading.Thread.start

    def noted(thread: threading.Thread) -> None:
        names.append(thread.name)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", noted)
    return names


def _pretend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **files: str) -> None:
    """Let the limits of the machine be those in ``files``, by the last part of their names."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    nowhere = tmp_path / "nowhere"

    def found(path: str) -> Path:
        return tmp_path / Path(path).name if Path(path).name in files else nowhere

    monkeypatch.setattr(capacity, "Path", found)
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    monkeypatch.setattr(resource, "getrlimit", lambda _: unlimited)


@pytest.mark.parametrize(
    ("files", "limit", "left"),
    [
        ({"threads-max": "40"}, "/proc/sys/kernel/threads-max", 39),
        ({"pid_max": "40"}, "/proc/sys/kernel/pid_max", 39),
        ({"max_map_count": "100", "maps": "one line\n" * 60}, "/proc/sys/vm/max_map_count", 20),
        ({"threads-max": "41", "pid_max": "31", "max_map_count": "1000"}, "/proc/sys/kernel/pid_max", 30),
        ({"pid_max": "0"}, "/proc/sys/kernel/pid_max", 0),
    ],
)
def test_the_tightest_limit_is_named_with_both_numbers_and_nothing_is_started(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    starts: list[str],
    files: dict[str, str],
    limit: str,
    left: int,
) -> None:
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    _pretend(monkeypatch, tmp_path, **files)
    with pytest.raises(CapacityError) as caught:
        fs.start(GRAPH, {"a": NeverBuilt, "b": NeverBuilt})
    assert f"asks for 60 replicas, each a thread, and this process can start {left} more ({limit})" in str(
        caught.value
    )
    assert "Declare fewer replicas" in str(caught.value)
    assert starts == []


def test_the_limit_of_the_user_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _pretend(monkeypatch, tmp_path)
    monkeypatch.setattr(threading, "active_count", lambda: 5)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 128))
    assert capacity.threads_left() == {"ulimit -u": 59}
    with pytest.raises(CapacityError, match=r"60 replicas.* can start 59 more \(ulimit -u\)"):
        fs.start(GRAPH, {"a": NeverBuilt, "b": NeverBuilt})


def test_the_limit_of_a_control_group_counts_as_that_of_those_above(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    root = tmp_path / "cgroup"
    (root / "job" / "step").mkdir(parents=True)
    (root / "job" / "pids.max").write_text("100\n")
    (root / "job" / "pids.current").write_text("80\n")
    (root / "job" / "step" / "pids.max").write_text("max\n")
    (root / "job" / "step" / "pids.current").write_text("3\n")
    (tmp_path / "own").write_text("0::/job/step\n")
    places = {"/sys/fs/cgroup": root, "/proc/self/cgroup": tmp_path / "own"}
    monkeypatch.setattr(capacity, "Path", lambda path: places.get(path, tmp_path / "nowhere"))
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    assert capacity.threads_left() == {str(root / "job" / "pids.max"): 20}


def test_a_machine_that_tells_no_limit_is_tried(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _pretend(monkeypatch, tmp_path)
    assert capacity.threads_left() == {}
    assert ThreadsBackend.describe() == {}
    with fs.start(GRAPH, {"a": _same, "b": _same}) as session:
        assert session.run({"x": np.arange(60)})["b"].tolist() == list(range(60))


def test_only_the_replicas_that_a_plan_uses_are_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    _pretend(monkeypatch, tmp_path, pid_max="9")
    plan = fs.compile(GRAPH, 4)
    assert fs.run(plan, {"a": _same, "b": _same}, {"x": np.arange(4)})["b"].tolist() == [0, 1, 2, 3]
    with pytest.raises(CapacityError, match="asks for 60"):
        fs.start(GRAPH, {"a": _same, "b": _same})


@pytest.mark.timeout(30)
@pytest.mark.parametrize("bad", [0, 1, 30, 59])
def test_a_thread_that_the_machine_refuses_ends_those_that_were_started(
    monkeypatch: pytest.MonkeyPatch, bad: int
) -> None:
    before = set(threading.enumerate())
    start = threading.Thread.start
    started: list[threading.Thread] = []

    def refusing(thread: threading.Thread) -> None:
        if len(started) == bad:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refusing)
    with pytest.raises(CapacityError) as caught:
        fs.start(GRAPH, {"a": _same, "b": _same}, grace=20.0)
    said = f"asks for 60 replicas, each a thread, and the machine refused thread {bad + 1} (can't start new thread)"
    assert said in str(caught.value)
    assert type(caught.value.__cause__) is RuntimeError
    assert [thread.name for thread in started if thread.is_alive()] == []
    assert set(threading.enumerate()) == before


def test_an_interruption_while_a_thread_starts_is_not_taken_for_a_refusal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        try:
            raise KeyboardInterrupt
        finally:
            threading.Lock().release()  # as happens inside of Condition.wait

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fs.start(GRAPH, {"a": _same, "b": _same})


def test_this_machine_tells_how_many_threads_are_left() -> None:
    left = ThreadsBackend.describe()
    assert all(isinstance(count, int) and count > 0 for count in left.values())
