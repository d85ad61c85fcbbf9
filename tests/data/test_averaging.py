"""The mean is that over rows, on every rank the same, however rows came in batches and ranks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from flowsched.data import MeanError, weighted_mean
from tests.data.ranks import Outcomes, Refusal, run_on_ranks

CASES: dict[str, Any] = {
    # Rank r has r rows, each of which is r.
    "rows": lambda rank, _: weighted_mean([float(rank)] * rank if rank else None),
    "batches": lambda rank, _: weighted_mean(torch.tensor(float(rank)), rows=rank),
    "names": lambda rank, _: weighted_mean(
        {"loss": [float(rank)] * rank, "right": [rank % 2 == 0] * rank} if rank else None
    ),
    "last alone": lambda rank, ranks: weighted_mean([1, 2] if rank == ranks - 1 else []),
    "nobody": lambda *_: weighted_mean([]),
    "nan": lambda rank, _: weighted_mean([1.0, math.nan if rank == 0 else 1.0]),
    "many": lambda rank, _: weighted_mean(
        {f"a long name of one value, number {at}": rank for at in range(200)}
    ),
    "other names": lambda rank, ranks: weighted_mean({"lost" if rank == ranks - 1 else "loss": [1.0]}),
    "no name": lambda rank, ranks: weighted_mean([1.0] if rank == ranks - 1 else {"loss": [1.0]}),
    "text": lambda rank, ranks: weighted_mean(["1"] if rank == ranks - 1 else [1.0]),
    "lengths": lambda rank, ranks: weighted_mean([1.0, 2.0], rows=[1] if rank == ranks - 1 else [1, 2]),
}


@pytest.fixture(scope="module", params=(1, 4), ids=lambda ranks: f"{ranks} ranks")
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """What came of all cases on each rank."""
    return run_on_ranks(request.param, CASES, tmp_path_factory.mktemp("ranks"))


def _same(outcomes: Outcomes, case: str) -> Any:
    found = [own[case] for own in outcomes]
    assert all(repr(one) == repr(found[0]) for one in found) or any(isinstance(one, Refusal) for one in found)
    return found[0]


def test_the_mean_is_that_over_the_rows_of_all_ranks(outcomes: Outcomes) -> None:
    rows = [rank for rank in range(len(outcomes)) for _ in range(rank)]
    if not rows:
        assert math.isnan(_same(outcomes, "rows"))
        assert math.isnan(_same(outcomes, "batches"))
        return
    assert _same(outcomes, "rows") == pytest.approx(np.mean(rows))
    assert _same(outcomes, "batches") == pytest.approx(np.mean(rows))
    assert _same(outcomes, "names") == pytest.approx(
        {"loss": np.mean(rows), "right": np.mean([row % 2 == 0 for row in rows])}
    )


def test_ranks_without_rows_take_part(outcomes: Outcomes) -> None:
    assert _same(outcomes, "last alone") == 1.5


def test_no_rows_anywhere_have_no_mean(outcomes: Outcomes) -> None:
    assert math.isnan(_same(outcomes, "nobody"))


def test_nan_on_one_rank_is_seen_on_all(outcomes: Outcomes) -> None:
    assert math.isnan(_same(outcomes, "nan"))


def test_any_number_of_names_is_averaged(outcomes: Outcomes) -> None:
    found = _same(outcomes, "many")
    assert len(found) == 200
    assert set(found.values()) == {(len(outcomes) - 1) / 2}


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("other names", "[other-names] rank 3: it has 'lost', and rank 0 has 'loss'"),
        ("no name", "[other-names] rank 3: it has values without a name, and rank 0 has 'loss'"),
        ("text", "[no-numbers] rank 3, values: TypeError: <U1 is no type of numbers"),
        ("lengths", "[other-lengths] rank 3, values: there are 2, and 1 numbers of rows"),
    ],
)
def test_what_does_not_fit_on_one_rank_is_refused_on_all(outcomes: Outcomes, case: str, said: str) -> None:
    if len(outcomes) == 4:
        for own in outcomes:
            assert own[case].kind == "MeanError"
            assert said in own[case].text


@settings(deadline=None)
@given(st.lists(st.lists(st.floats(-1e6, 1e6), max_size=9), min_size=1, max_size=9))
def test_batches_with_their_rows_have_the_mean_of_all_rows(batches: list[list[float]]) -> None:
    rows = [value for batch in batches for value in batch]
    means = [np.mean(batch) if batch else math.nan for batch in batches]  # as the loss of an empty batch is
    found = weighted_mean(means, rows=[len(batch) for batch in batches])
    if rows:
        assert found == pytest.approx(np.mean(rows), rel=1e-9, abs=1e-6)
    else:
        assert math.isnan(found)


@pytest.mark.parametrize(
    "values",
    [
        torch.tensor([1, 2, 6]),
        torch.tensor([1, 2, 6], dtype=torch.bfloat16, requires_grad=False),
        torch.tensor([1.0, 2.0, 6.0], requires_grad=True),
        np.array([1, 2, 6], dtype=np.uint8),
        [1, np.float32(2), torch.tensor([6.0], requires_grad=True)],
        (one for one in (1, 2, 6)),
    ],
)
def test_values_may_be_of_any_type_of_numbers(values: Any) -> None:
    assert weighted_mean(values) == 3.0


def test_sums_do_not_overflow_the_type_of_values() -> None:
    assert weighted_mean(torch.full((1000,), 60_000.0, dtype=torch.float16)) == 60_000.0
    assert weighted_mean(np.full(1000, 100, dtype=np.int8)) == 100.0


def test_rows_may_differ_by_name() -> None:
    values = {"loss": [1.0, 4.0], "length": [10.0, 20.0]}
    rows = {"loss": [2, 1], "length": [1, 1]}
    assert weighted_mean(values, rows=rows) == {"loss": 2.0, "length": 15.0}


@pytest.mark.parametrize(
    ("values", "rows", "said"),
    [
        ([1.0], [-1], r"\[bad-rows\] rank 0, rows: one of them is -1.0"),
        ([1.0], [math.nan], r"\[bad-rows\] rank 0, rows: one of them is nan"),
        (torch.ones(2, 2), None, r"\[no-numbers\] rank 0, values: they are float32 of shape \(2, 2\)"),
        ([1j], None, r"\[no-numbers\] rank 0, values: they are complex128"),
        ([None], None, r"\[no-numbers\] rank 0, values: TypeError"),
        ({"loss": [1.0]}, {"lost": [1]}, r"\[other-names\] rank 0, rows: they are given for 'lost'"),
        ({1: 2.0, "1": 4.0}, None, r"\[bad-name\] rank 0, names: one of them is 1 \(int\)"),
        ({"1": 4.0}, {"1": 1, 1: 1}, r"\[bad-name\] rank 0, names: one of them is 1 \(int\)"),
        ({"loss": [1.0]}, [1, 2], r"\[other-lengths\] rank 0, values of 'loss': there are 1, and 2"),
    ],
)
def test_what_has_no_mean_over_rows_is_refused(values: Any, rows: Any, said: str) -> None:
    with pytest.raises(MeanError, match=said):
        weighted_mean(values, rows=rows)
