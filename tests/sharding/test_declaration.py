"""What cannot be dealt is refused with all its problems, where they are and how to mend them."""

from __future__ import annotations

from typing import Any

import pytest

from flowsched.sharding import Sharding, ShardingError


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"samples": -1}, r"\[too-small\] samples: -1 is below 0. Give 0 or more"),
        ({"ranks": 0}, r"\[too-small\] ranks: 0 is below 1"),
        ({"batch_size": 2.5}, r"\[not-whole\] batch_size: 2.5 \(float\) is no whole number"),
        ({"ranks": True}, r"\[not-whole\] ranks: True \(bool\)"),
        ({"mode": "exakt"}, r"\[unknown\] mode: 'exakt' is not known. Did you mean 'exact'"),
        ({"tail": "trim", "mode": "even"}, r"\[unknown\] tail: 'trim' is not known"),
        ({"tail": "pad"}, r"\[no-tail\] tail: tail='pad' changes nothing in mode 'exact'"),
        ({"group": 5}, r"\[group-too-large\] batch_size: a batch of 4 cannot hold a group of 5"),
        ({"group": 3}, r"\[group-cut\] group: 10 samples make 3 groups of 3, and 1 are left over"),
        ({"lengths": [1.0] * 9}, r"\[bad-lengths\] lengths: their shape is \(9,\)"),
        ({"lengths": [1.0] * 9 + [-1.0]}, r"\[bad-lengths\] lengths: that of sample 9 is -1.0"),
        ({"lengths": ["long"] * 10}, r"\[bad-lengths\] lengths: they are no numbers"),
    ],
)
def test_what_cannot_be_dealt_is_refused_with_the_mend(wrong: dict[str, Any], said: str) -> None:
    arguments: dict[str, Any] = {"samples": 10, "ranks": 2, "batch_size": 4, **wrong}
    with pytest.raises(ShardingError, match=said):
        Sharding(**arguments)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(ShardingError) as caught:
        Sharding(-1, 0, 0, "odd")
    assert len(caught.value.problems) == 4
