"""Of the ranks that end a step exactly one is the last, whatever their order, step after step."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest
from flowsched_torch.arrivals import Arrivals


@pytest.fixture
def arrivals() -> Iterator[Arrivals]:
    made = Arrivals.make()
    yield made
    made.close()


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_the_last_of_them_is_told_so_in_every_step(arrivals: Arrivals, ranks: int) -> None:
    for _ in range(3):
        arrivals.expect(ranks)
        assert [arrivals.is_last() for _ in range(ranks)] == [False] * (ranks - 1) + [True]


def test_steps_may_have_different_numbers_of_ranks(arrivals: Arrivals) -> None:
    for ranks in (3, 1, 4, 2):
        arrivals.expect(ranks)
        assert [arrivals.is_last() for _ in range(ranks)].count(True) == 1


def test_where_all_arrive_at_once_one_of_them_is_the_last(arrivals: Arrivals) -> None:
    ranks = 8
    for _ in range(20):
        arrivals.expect(ranks)
        found: list[bool] = []
        ready = threading.Barrier(ranks)

        def arrive(ready: threading.Barrier = ready, found: list[bool] = found) -> None:
            ready.wait(10)
            found.append(arrivals.is_last())

        threads = [threading.Thread(target=arrive) for _ in range(ranks)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert sorted(found) == [False] * (ranks - 1) + [True]


def test_another_process_that_is_given_the_files_arrives_there_too(arrivals: Arrivals) -> None:
    arrivals.expect(2)
    child = os.fork()
    if child == 0:
        os._exit(int(Arrivals(arrivals.files).is_last()))
    assert os.waitpid(child, 0)[1] == 0
    assert arrivals.is_last()
