"""A state is plain data, and refused for other samples or another order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flowsched.data import ShardedBatchSampler
from flowsched.sharding import ShardingError

LIKE: dict[str, Any] = {
    "data": 40,
    "batch_size": 4,
    "group": 2,
    "shuffle": True,
    "seed": 3,
    "lengths": list(range(40)),
    "fingerprint": "prompts-v1",
}


def make(**other: Any) -> ShardedBatchSampler:
    """A sampler of the second of three ranks."""
    return ShardedBatchSampler(**{"rank": 1, "ranks": 3, **LIKE, **other})


def test_a_state_is_plain_data() -> None:
    state = make().state_dict(batches=2)
    assert json.loads(json.dumps(state)) == state
    assert state["seen"] == 24


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"data": 42, "lengths": None}, "samples: the state has 40, and here it is 42"),
        ({"group": 4}, "group: the state has 2, and here it is 4"),
        ({"shuffle": False}, "shuffle: the state has True, and here it is False"),
        ({"seed": 4}, "seed: the state has 3, and here it is 4"),
        ({"mode": "local"}, "local: the state has False, and here it is True"),
        (
            {"lengths": list(range(1, 41))},
            "lengths: the state has '[0-9a-f]{32}', and here it is '[0-9a-f]{32}'",
        ),
        ({"fingerprint": "prompts-v2"}, "the state has 'prompts-v1', and here it is 'prompts-v2'"),
    ],
)
def test_a_state_of_other_data_or_another_order_is_refused_with_both(
    other: dict[str, Any], said: str
) -> None:
    sampler = make(**other)
    with pytest.raises(ShardingError, match=rf"\[other-data\] .*{said}"):
        sampler.load_state_dict(make().state_dict(batches=2))
    assert sampler.deal.seen == 0


@pytest.mark.parametrize(
    "other",
    [
        {"rank": 0, "ranks": 1},
        {"batch_size": 7},
        {"mode": "even", "tail": "pad"},
        {"lengths": None},
        {"fingerprint": None},
    ],
)
def test_a_state_is_read_with_other_ranks_batches_tails_and_where_less_is_known(
    other: dict[str, Any],
) -> None:
    sampler = make(**other)
    sampler.load_state_dict(make().state_dict(batches=2))
    assert sampler.deal.seen == 24


def test_seeds_matter_only_to_what_is_shuffled() -> None:
    sampler = make(shuffle=False, seed=9)
    sampler.load_state_dict(make(shuffle=False, seed=8).state_dict(batches=1))
    assert sampler.deal.seen == 12


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ({"format": 99}, "format: it is 99, and 1 is read here"),
        ({"seen": 41}, "seen: 41 is no number of samples"),
        ({"seen": 3}, "seen: 3 is no number of samples"),
        ({"seen": -2}, "seen: -2 is no number"),
        ({"epoch": None}, "epoch: None is no number of an epoch"),
    ],
)
def test_damage_is_refused(damage: dict[str, Any], said: str) -> None:
    with pytest.raises(ShardingError, match=said):
        make().load_state_dict({**make().state_dict(batches=2), **damage})


@pytest.mark.parametrize("state", [{}, {"format": 1}, None, [1, 2]])
def test_what_is_no_state_is_refused(state: Any) -> None:
    with pytest.raises(ShardingError, match="other-format"):
        make().load_state_dict(state)
