"""Ranks that the backend starts itself: where they come from, that none is left, and what moves between them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
from flowsched_torch import TorchBackend
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import flowsched as fs
from flowsched.errors import BackendError, ReplicaLostError
from flowsched.programs import PlacementError
from flowsched.testing.comparing import assert_same
from tests.backends.torch import workers

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.timeout(110)

TWO = fs.Graph("two", ["x"], [fs.Node("a", ["x"], replicas=3, batch_size=2), fs.Node("b", ["a"], replicas=2)])
ADDING: dict[str, Any] = {"a": workers.add_one, "b": workers.double}


def _is_there(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def _wait_until_gone(pids: list[int], seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while left := [pid for pid in pids if _is_there(pid)]:
        assert time.monotonic() < until, f"processes are left: {left}"
        time.sleep(0.02)


def test_importing_the_backend_does_not_import_torch() -> None:
    code = "import sys, flowsched_torch; flowsched_torch.TorchBackend(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_each_replica_has_a_rank_of_its_own_by_default(local: TorchBackend) -> None:
    graph = fs.Graph("one", ["x"], [fs.Node("a", ["x"], replicas=5, batch_size=1)])
    out = fs.run(fs.compile(graph, 10), {"a": workers.say_process}, {"x": np.arange(10)}, backend=local)["a"]
    assert len(set(out.tolist())) == 5
    assert os.getpid() not in out
    _wait_until_gone(out.tolist())


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"ranks": 2}, 2),
        ({"placement": {"a": [0, 0, 1], "b": [2, 2]}}, 2),
        ({"placement": {"a": [0, 0, 0], "b": [0, 1]}}, 1),
    ],
)
def test_replicas_share_ranks_as_asked(options: dict[str, Any], expected: int) -> None:
    out = fs.run(
        fs.compile(fs.Graph("g", ["x"], TWO.nodes, ["a", "b"]), 12),
        {"a": workers.say_process, "b": workers.pass_on},
        {"x": np.arange(12)},
        backend="torch",
        start="local",
        **options,
    )
    assert len(set(out["a"].tolist())) == expected
    assert_same(out["b"], out["a"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"ranks": 0}, "ranks is 0"),
        ({"grace": -1}, "grace is -1"),
        ({"timeout": "long"}, "timeout is 'long'"),
        ({"inputs_on": "some"}, "inputs_on is 'some'"),
        ({"start": "torchrum"}, "Did you mean 'torchrun'"),
        ({"devices": {"a": []}}, "devices of node 'a'"),
    ],
)
def test_options_that_are_none_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(BackendError, match=said):
        TorchBackend(**options)


def test_a_placement_that_does_not_fit_is_refused_before_anything_starts() -> None:
    with pytest.raises(PlacementError, match="node 'b'"):
        fs.start(TWO, ADDING, backend="torch", start="local", placement={"a": [0, 1, 2]})


def test_devices_are_given_in_turn() -> None:
    backend = TorchBackend(start="local", devices={"a": ["cpu:0", "cpu:1"]}, device="meta")
    graph = fs.Graph("one", ["x"], [fs.Node("a", ["x"], replicas=3), fs.Node("b", ["x"])], ["a", "b"])
    out = fs.run(fs.compile(graph, 3), dict.fromkeys("ab", _say_device), {"x": np.arange(3)}, backend=backend)
    assert out["a"] == ["cpu:0", "cpu:1", "cpu:0"]
    assert out["b"] == ["meta"] * 3


def _say_device(batch: Any, context: fs.Context) -> Any:
    return [context.device] * len(batch)


def test_a_rank_that_dies_between_steps_is_told_at_the_next(local: TorchBackend) -> None:
    graph = fs.Graph("one", ["x"], [fs.Node("a", ["x"], replicas=2, batch_size=2)])
    for steps in (1, 3):  # by then the ranks have begun the next step beforehand
        with fs.start(graph, {"a": workers.say_process}, backend=local) as session:
            for _ in range(steps):
                out = session.run({"x": np.arange(4)})["a"].tolist()
            os.kill(out[2], signal.SIGKILL)
            with pytest.raises(ReplicaLostError, match=r"signal 9 \(SIGKILL\)") as caught:
                session.run({"x": np.arange(4)})
        assert (caught.value.node, caught.value.replica) == ("a", 1)


def test_a_stopped_rank_is_given_up() -> None:
    graph = fs.Graph("one", ["x"], [fs.Node("a", ["x"], replicas=2, batch_size=2)])
    backend = TorchBackend(start="local", timeout=3)
    with fs.start(graph, {"a": workers.say_process}, backend=backend) as session:
        out = session.run({"x": np.arange(4)})["a"].tolist()
        os.kill(out[0], signal.SIGSTOP)
        with pytest.raises(ReplicaLostError, match="has not answered for 3 seconds"):
            session.run({"x": np.arange(4)})
    _wait_until_gone(out)


@contextlib.contextmanager
def _program(text: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", dedent(text), *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_ranks_end_with_a_program_that_is_killed(tmp_path: Path) -> None:
    text = """
        import sys
        from functools import partial
        from pathlib import Path
        import numpy as np
        import flowsched as fs
        from tests.backends.torch import workers
        graph = fs.Graph("one", ["x"], [fs.Node("a", ["x"], replicas=3)])
        worker = partial(workers.wait_long, folder=Path(sys.argv[1]))
        fs.run(fs.compile(graph, 3), {"a": worker}, {"x": np.arange(3)}, backend="torch", start="local")
    """
    with _program(text, str(tmp_path)) as process:
        until = time.monotonic() + 60
        while len(list(tmp_path.iterdir())) < 3:
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < until
            time.sleep(0.05)
        pids = [int(path.name) for path in tmp_path.iterdir()]
        process.kill()
        _wait_until_gone(pids)


def test_a_script_needs_no_guard_and_its_models_no_module(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(
        dedent("""
            import flowsched as fs
            print("begun")

            class Model:
                def __call__(self, texts):
                    print("in a rank", flush=True)
                    return [{"said": Said(text)} for text in texts]

            class Said:
                def __init__(self, text):
                    self.text = text

            def read(said):
                return [one["said"].text.upper() for one in said]

            graph = fs.Graph("g", ["x"], [fs.Node("a", ["x"], replicas=2), fs.Node("b", ["a"])])
            out = fs.run(fs.compile(graph, 4), {"a": Model, "b": read}, {"x": list("abcd")}, backend="torch")
            print(out["b"])
        """)
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=100, check=False
    )
    assert "['A', 'B', 'C', 'D']" in done.stdout
    assert [done.stdout.count(said) for said in ("begun", "in a rank")] == [1, 2]
    assert (done.returncode, done.stderr) == (0, "")


def test_after_the_process_that_ranks_are_forked_from_was_killed_another_one_serves() -> None:
    backend = TorchBackend(start="local")
    plan, inputs = fs.compile(TWO, 12), {"x": np.arange(12)}
    assert_same(fs.run(plan, ADDING, inputs, backend=backend)["b"], (np.arange(12) + 1) * 2)
    assert backend._forking is not None
    os.kill(backend._forking._process.pid, signal.SIGKILL)
    backend._forking._process.wait()
    assert_same(fs.run(plan, ADDING, inputs, backend=backend)["b"], (np.arange(12) + 1) * 2)


def test_steps_of_any_size_follow_each_other(local: TorchBackend) -> None:
    with fs.start(TWO, ADDING, backend=local) as session:
        for samples in [12, 12, 12, 5, 12, 5, 5, 5, 0, 5, 1, *range(20, 40), 12, 12, 12]:
            out = session.run({"x": np.arange(samples)})["b"]
            assert_same(out if samples else np.arange(0), (np.arange(samples) + 1) * 2)


def test_rows_whose_width_changes_with_every_step_move(local: TorchBackend) -> None:
    graph = fs.Graph(
        "wide",
        ["x"],
        [fs.Node("a", ["x"], replicas=2, batch_size=1), fs.Node("b", ["a"], replicas=2, batch_size=1)],
    )
    with fs.start(graph, {"a": workers.widen, "b": workers.narrow}, backend=local) as session:
        for width in [3, 3, 100, 70_000, 70_000, 90_000, 5, 400_000, 399_999, 0, 0, 70_000]:
            numbers = np.array([width, max(width - 1, 0), width])
            assert_same(session.run({"x": numbers})["b"], (numbers * numbers).astype(np.float64))


def test_batches_that_are_kept_are_never_written_over(local: TorchBackend) -> None:
    graph = fs.Graph(
        "keep",
        ["x"],
        [fs.Node("a", ["x"], replicas=2, batch_size=3), fs.Node("b", ["a"], batch_size=6)],
        ["a", "b"],
    )
    made = []
    with fs.start(graph, {"a": workers.add_one, "b": workers.Keeps}, backend=local) as session:
        for step in range(6):
            out = session.run({"x": np.arange(12) + step})
            assert out["b"].all()
            made.append(out["a"])
    for step, own in enumerate(made):
        assert_same(own, np.arange(12) + step + 1)


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    cuts=st.lists(st.tuples(st.integers(1, 3), st.none() | st.integers(1, 4)), min_size=4, max_size=4),
    ranks=st.integers(1, 4),
    samples=st.lists(st.integers(0, 30), min_size=1, max_size=3),
    limit=st.none() | st.integers(1, 2),
)
def test_any_graph_on_any_ranks_makes_what_threads_make(
    cuts: list[tuple[int, int | None]], ranks: int, samples: list[int], limit: int | None
) -> None:
    sizes: list[dict[str, Any]] = [{"replicas": count, "batch_size": size} for count, size in cuts]
    graph = fs.Graph(
        "any",
        ["x"],
        [
            fs.Node("a", ["x"], **sizes[0]),
            fs.Node("b", ["a"], **sizes[1]),
            fs.Node("c", ["a"], **sizes[2], after=["b"]),
            fs.Node("again", ["b"], replicas_of="a", batch_size=2),
            fs.Node("d", ["b", "c", "again"], **sizes[3]),
        ],
        ["d", "b"],
    )
    models = {"a": workers.add_one, "b": workers.double, "c": workers.add_one, "d": _sum}
    backend = _ON_RANKS.setdefault(ranks, TorchBackend(start="local", ranks=ranks))
    with (
        fs.start(graph, models, max_in_flight=limit) as here,
        fs.start(graph, models, backend=backend, max_in_flight=limit) as there,
    ):
        for count in [*samples, *samples]:
            inputs = {"x": np.arange(count) * 3.5}
            assert_same(dict(there.run(inputs)), dict(here.run(inputs)))


_ON_RANKS: dict[int, TorchBackend] = {}


def _sum(*batches: Any) -> Any:
    return sum(batches[1:], batches[0])


def test_a_session_that_is_closed_at_once_has_run_nothing(tmp_path: Path) -> None:
    worker = partial(workers.wait_long, folder=tmp_path)
    graph = fs.Graph("one", ["x"], [fs.Node("a", ["x"], replicas=2)])
    session = fs.start(graph, {"a": worker}, backend="torch", start="local")
    session.close()
    assert not list(tmp_path.iterdir())
