"""What is compared in the figures of sharding does the same work on every side."""

from __future__ import annotations

import pytest

from benchmarks.gathering import LISTED, OURS, RANKS, run_on_ranks
from benchmarks.sharding import ACCELERATE, BATCH, FLOWSCHED, TORCH, make_sampler, measure_here

SAMPLES = 1_024


@pytest.mark.parametrize("side", [FLOWSCHED, TORCH, ACCELERATE])
@pytest.mark.parametrize("shuffle", [False, True])
def test_every_sampler_gives_each_rank_full_batches_of_its_share(side: str, shuffle: bool) -> None:
    if side == ACCELERATE:
        pytest.importorskip("accelerate")
    for rank in range(RANKS):
        batches = list(make_sampler(side, SAMPLES, shuffle, rank))
        assert [len(batch) for batch in batches] == [BATCH] * (SAMPLES // RANKS // BATCH)
    assert measure_here(side, shuffle, SAMPLES)["cpu"] >= 0


def test_every_side_gathers_on_four_ranks() -> None:
    timings = run_on_ranks(rounds=2, rows=256)
    assert {*OURS, LISTED} <= timings.keys()
    assert all(len(own) == 2 and own[0].wall > 0 for own in timings.values())
