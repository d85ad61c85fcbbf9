"""An output like the ones before is known at a look; what is not like them is looked into, in any step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import flowsched as fs
from flowsched.batch import structure
from flowsched.errors import OutputError
from flowsched.runtime.usual import Usual

ROWS = 4

LIKE = [
    (torch.zeros(2, 3), torch.ones(ROWS, 3)),
    (np.zeros((2, 3), np.float32), np.ones((ROWS, 3), np.float32)),
]
UNLIKE = [
    (torch.zeros(2, 3), torch.zeros(ROWS, 3, dtype=torch.float64)),
    (torch.zeros(2, 3), torch.zeros(ROWS, 2)),
    (torch.zeros(2, 3), torch.zeros(ROWS, 3).to_sparse()),
    (torch.zeros(2, 3), torch.nn.Parameter(torch.zeros(ROWS, 3))),
    (torch.zeros(2, 3), np.zeros((ROWS, 3), np.float32)),
    (torch.zeros(2, 3), torch.zeros(ROWS - 1, 3)),
    (torch.zeros(2), torch.tensor(0.0)),
    (np.zeros(2), np.zeros(ROWS, np.int64)),
    (np.zeros(2), np.ma.zeros(ROWS)),
]


@pytest.mark.parametrize(("before", "after"), LIKE)
def test_the_same_kind_of_rows_is_known_with_any_number_of_them(before: Any, after: Any) -> None:
    usual = Usual.of(before, structure(before))
    assert usual is not None
    assert usual.is_like(after, ROWS)
    assert usual.structure == structure(after)


@pytest.mark.parametrize(("before", "after"), UNLIKE)
def test_what_differs_in_anything_is_not_known(before: Any, after: Any) -> None:
    usual = Usual.of(before, structure(before))
    assert usual is not None
    assert not usual.is_like(after, ROWS)


@pytest.mark.parametrize("batch", [{"ids": np.zeros(2)}, ["a", "b"], None])
def test_what_is_no_bare_array_or_tensor_is_never_known(batch: Any) -> None:
    assert Usual.of(batch, structure(batch)) is None


@pytest.mark.parametrize("make", [np.zeros, torch.zeros])
def test_steps_may_differ_in_dtype_and_calls_of_one_step_may_not(make: Callable[..., Any]) -> None:
    doubled = np.float64 if make is np.zeros else torch.float64
    kinds: list[Any] = []

    def work(rows: Any) -> Any:
        return make((len(rows), 2), dtype=kinds.pop(0))

    graph = fs.Graph("one", sources=["x"], nodes=[fs.Node("a", inputs=["x"], batch_size=2)])
    single = np.float32 if make is np.zeros else torch.float32
    with fs.start(graph, {"a": work}, backend="threads") as session:
        for dtype in (single, single, doubled):
            kinds[:] = [dtype] * 3
            assert session.run({"x": np.zeros(6)})["a"].dtype == dtype
        kinds[:] = [doubled, doubled, single]
        with pytest.raises(OutputError, match=r"a\.0\.2\[4:6\].*differs from that of a\.0\.0\[0:2\]"):
            session.run({"x": np.zeros(6)})
