"""A process knows its place from what it is given, from the process group, or from its launcher."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch.distributed as dist

from flowsched.data.place import Place, find_place
from flowsched.sharding import ShardingError


@pytest.fixture
def one_process_group(tmp_path: Path) -> Iterator[dist.ProcessGroup]:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1)
    group = dist.group.WORLD
    assert group is not None
    yield group
    dist.destroy_process_group()


def test_numbers_that_are_given_win_over_what_the_launcher_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert find_place() == Place(1, 2)
    assert find_place(rank=5, ranks=7) == Place(5, 7)


def test_a_process_group_wins_over_what_the_launcher_says(
    one_process_group: dist.ProcessGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert find_place() == find_place(process_group=one_process_group) == Place(0, 1)


def test_a_process_that_nobody_launched_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert find_place() == Place(0, 1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rank": 1}, r"\[half-a-place\] rank: it is given without ranks. Give both, or neither"),
        ({"ranks": 4}, r"\[half-a-place\] ranks: it is given without rank"),
        ({"rank": 4, "ranks": 4}, r"\[no-such-rank\] rank: 4 is none of 0 to 3"),
        ({"rank": -1, "ranks": 4}, r"\[no-such-rank\] rank: -1 is none of 0 to 3"),
        ({"environment": {"RANK": "2"}}, r"it says RANK=2, which is no rank and its ranks"),
        ({"environment": {"RANK": "two", "WORLD_SIZE": "3"}}, r"it says RANK=two, WORLD_SIZE=3"),
        ({"environment": {"RANK": "3", "WORLD_SIZE": "3"}}, r"\[no-such-rank\] environment: it says RANK=3"),
    ],
)
def test_what_is_no_place_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ShardingError, match=said):
        find_place(**given)


def test_numbers_that_contradict_the_process_group_are_refused(one_process_group: dist.ProcessGroup) -> None:
    with pytest.raises(
        ShardingError, match=r"rank=1, ranks=2 is given, and process_group= says rank=0, ranks=1"
    ):
        find_place(rank=1, ranks=2, process_group=one_process_group)
    assert find_place(rank=0, ranks=1, process_group=one_process_group) == Place(0, 1)
