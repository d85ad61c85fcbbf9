"""A failure surfaces at once, as itself, with its place; and nothing is left behind."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowsched as fs
from flowsched.errors import BuildError, OutputError, WorkerError
from tests.conformance import odd_workers as odd
from tests.conformance import row_workers as rows
from tests.conformance.conftest import RunGraph

pytestmark = pytest.mark.timeout(60)

AT_ONCE = 5.0  # seconds; the replicas that are busy meanwhile would be for thirty


def _one(replicas: int = 2, batch_size: int | None = 2, **options: Any) -> fs.Graph:
    return fs.Graph("one", ["x"], [fs.Node("a", ["x"], replicas=replicas, batch_size=batch_size, **options)])


def test_a_worker_that_raises_is_told_with_its_place_and_its_own_exception(run_graph: RunGraph) -> None:
    with pytest.raises(WorkerError) as caught:
        run_graph(_one(), {"a": partial(odd.raise_at, bad=6)}, {"x": np.arange(8)})
    error = caught.value
    assert type(error.__cause__) is odd.UserError
    assert str(error.__cause__) == "6 is bad"
    assert (error.node, error.replica, error.call, error.samples) == ("a", 1, "a.1.1[6:8]", (6, 8))
    for part in ("node 'a'", "replica 1", "a.1.1[6:8]", "samples 6, 7", "UserError: 6 is bad"):
        assert part in str(error)


def test_the_samples_of_an_error_are_those_of_the_step_where_rows_are_several_a_sample(
    run_graph: RunGraph,
) -> None:
    graph = fs.Graph("g", ["x"], [fs.Node("e", ["x"], expand=3), fs.Node("a", ["e"], batch_size=4)])
    with pytest.raises(WorkerError) as caught:
        run_graph(
            graph,
            {"e": partial(rows.repeat, times=3), "a": partial(odd.raise_at, bad=201)},
            {"x": np.arange(8)},
        )
    assert (caught.value.call, caught.value.samples) == ("a.0.1[4:8]", (1, 3))


def test_a_failure_surfaces_at_once_while_others_are_busy(run_graph: RunGraph, meeting: Path) -> None:
    began = time.monotonic()
    with pytest.raises(WorkerError) as caught:
        run_graph(
            _one(4, 1), {"a": partial(odd.raise_when_others_are_busy, folder=meeting)}, {"x": np.arange(9)}
        )
    assert time.monotonic() - began < AT_ONCE
    assert type(caught.value.__cause__) is odd.UserError


def test_workers_that_ask_learn_that_their_step_has_failed(run_graph: RunGraph, meeting: Path) -> None:
    graph = fs.Graph("two", ["x"], [fs.Node("a", ["x"], replicas=2), fs.Node("b", ["x"])])
    models = {
        "a": partial(odd.hold_until_cancelled, folder=meeting),
        "b": partial(_raise_when_held, folder=meeting),
    }
    with pytest.raises(WorkerError, match="node 'b'"):
        run_graph(graph, models, {"x": np.arange(4)})
    odd.wait_for_arrivals(meeting, "cancelled", 2, seconds=10)
    assert len(list(meeting.glob("cancelled-*"))) == 2


def _raise_when_held(_: Any, folder: Path) -> Any:
    odd.wait_for_arrivals(folder, "held", 2)
    raise odd.UserError("now")


def test_the_first_failure_is_the_one_that_is_raised(run_graph: RunGraph, tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match="UserError: first"):
        run_graph(_one(2, 1), {"a": partial(_raise_in_turn, folder=tmp_path)}, {"x": np.arange(2)})


def _raise_in_turn(_: Any, context: fs.Context, folder: Path) -> Any:
    if context.replica:
        odd.arrive(folder, "second")
        until = time.monotonic() + 10
        while not context.cancelled() and time.monotonic() < until:
            time.sleep(0.002)
        raise odd.UserError("second")
    odd.wait_for_arrivals(folder, "second", 1)
    raise odd.UserError("first")


@pytest.mark.parametrize(
    ("worker", "kind"), [(odd.exit_at_once, SystemExit), (odd.interrupt_at_once, KeyboardInterrupt)]
)
def test_even_exceptions_that_end_programs_are_told_as_failures_of_a_worker(
    run_graph: RunGraph, worker: Any, kind: type[BaseException]
) -> None:
    with pytest.raises(WorkerError) as caught:
        run_graph(_one(), {"a": worker}, {"x": np.arange(8)})
    assert type(caught.value.__cause__) is kind


@pytest.mark.parametrize("bad", [0, 2])
def test_one_constructor_that_raises_fails_the_start(backend: str, bad: int) -> None:
    with pytest.raises(BuildError) as caught:
        fs.start(_one(4), {"a": partial(odd.FailsToBuild, bad=bad)}, backend=backend)
    error = caught.value
    assert type(error.__cause__) is odd.UserError
    assert (error.node, error.replica, error.call, error.samples) == ("a", bad, None, None)
    assert f"building replica {bad} of 4 failed with UserError: the weights are missing" in str(error)


def test_a_constructor_that_raises_is_told_while_others_are_still_at_it(backend: str, meeting: Path) -> None:
    began = time.monotonic()
    with pytest.raises(BuildError):
        fs.start(_one(4), {"a": partial(odd.FailsWhileOthersBuild, folder=meeting)}, backend=backend)
    assert time.monotonic() - began < AT_ONCE


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_a_constructor_may_raise_anything(backend: str, kind: type[BaseException]) -> None:
    with pytest.raises(BuildError) as caught:
        fs.start(_one(3), {"a": partial(odd.FailsToBuild, error=kind)}, backend=backend)
    assert type(caught.value.__cause__) is kind


def test_an_exception_that_cannot_be_printed_hangs_nothing(backend: str) -> None:
    with pytest.raises((BuildError, RuntimeError)) as caught:
        fs.start(_one(3), {"a": partial(odd.FailsToBuild, error=odd.UnprintableError)}, backend=backend)
    assert odd.UnprintableError in _chain(caught.value)
    with pytest.raises((WorkerError, RuntimeError)) as caught:
        fs.run(fs.compile(_one(), 8), {"a": odd.raise_unprintable}, {"x": np.arange(8)}, backend=backend)
    assert odd.UnprintableError in _chain(caught.value)


def _chain(error: BaseException | None) -> list[type[BaseException]]:
    """Return the types of an exception and of what caused it."""
    return [] if error is None else [type(error), *_chain(error.__cause__ or error.__context__)]


@pytest.mark.parametrize(
    ("worker", "said"),
    [
        (odd.one_row_more, "it returned 5 rows, not 4: it read 4 rows"),
        (odd.one_number, "one per row"),
        (odd.no_axes, "0 axes"),
        (odd.no_axes_tensor, "0 axes"),
        (odd.some_text, "a str"),
        (odd.a_tuple, "a tuple"),
        (odd.a_nested_tuple, "column 'scores.all' is a tuple"),
        (odd.a_generator, "a generator"),
        (odd.unequal_columns, "'long' has 4, 'short' has 3"),
        (odd.numbered_key, "the key 1 (int)"),
    ],
)
def test_what_is_no_batch_of_as_many_rows_is_refused_with_its_place(
    run_graph: RunGraph, worker: Any, said: str
) -> None:
    with pytest.raises(OutputError) as caught:
        run_graph(_one(2, 4), {"a": worker}, {"x": np.arange(8)})
    error = caught.value
    assert said in str(error)
    place = {0: ("a.0.0[0:4]", (0, 4), "samples 0, 1, 2, 3"), 1: ("a.1.0[4:8]", (4, 8), "samples 4, 5, 6, 7")}
    assert (error.call, error.samples) == place[error.replica][:2]
    assert place[error.replica][2] in str(error)


@pytest.mark.parametrize(
    ("worker", "said"),
    [
        (odd.other_keys_later, ["column 'early'", "column 'late'"]),
        (odd.other_dtype_later, ["int64", "float32"]),
        (odd.other_kind_later, ["a list", "numpy array"]),
        (odd.none_later, ["None", "numpy array"]),
    ],
)
def test_columns_that_change_between_calls_of_a_node_are_refused(
    run_graph: RunGraph, worker: Any, said: list[str]
) -> None:
    with pytest.raises(OutputError, match="its output differs from that of a") as caught:
        run_graph(_one(2, 2), {"a": worker}, {"x": np.arange(8)})
    for part in said:
        assert part in str(caught.value)


def test_a_masked_array_is_refused_also_where_plain_ones_came_before(run_graph: RunGraph) -> None:
    with pytest.raises(OutputError, match="MaskedArray"):
        run_graph(_one(1, 2), {"a": odd.masked_later}, {"x": np.arange(8)})


def test_rows_are_counted_after_expanding_and_collapsing(run_graph: RunGraph) -> None:
    graph = _one(1, None, expand=3)
    with pytest.raises(OutputError, match="it returned 4 rows, not 12: it read 4 rows and expands each to 3"):
        run_graph(graph, {"a": rows.pass_on}, {"x": np.arange(4)})
    graph = _one(1, None, collapse=2)
    with pytest.raises(
        OutputError, match="it returned 4 rows, not 2: it read 4 rows and collapses 2 into one"
    ):
        run_graph(graph, {"a": rows.pass_on}, {"x": np.arange(4)})


def test_a_failure_deep_in_the_graph_ends_what_waits_for_it(run_graph: RunGraph) -> None:
    graph = fs.Graph(
        "deep",
        sources=["x"],
        nodes=[
            fs.Node("a", ["x"], batch_size=1),
            fs.Node("b", ["a"], replicas=2, batch_size=1),
            fs.Node("c", ["b"], batch_size=None),
            fs.Node("d", ["c", "a"], replicas=3, after=["b"]),
        ],
    )
    models = {"a": rows.add_one, "b": partial(odd.raise_at, bad=20), "c": rows.pass_on, "d": rows.add}
    with pytest.raises(WorkerError, match="node 'b'"):
        run_graph(graph, models, {"x": np.arange(30)})
