"""Batches of any structure are moved, and lose their rows, without losing their form."""

from __future__ import annotations

from collections import UserDict
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch.utils.data import default_collate

from flowsched.data.structure import drop_rows, move
from flowsched.sharding import ShardingError


class Pair(NamedTuple):
    """Two columns."""

    ids: Any
    texts: Any


@dataclass
class Columns:
    """Two columns."""

    ids: Any
    texts: Any


@pytest.mark.parametrize(
    "sample",
    [
        torch.ones(3),
        7,
        "a text",
        (torch.ones(3), 7, "a text"),
        {"ids": torch.ones(2, 2), "text": "a", "pair": (1, 2.0), "bool": True},
        Pair(torch.ones(3), "a"),
        [1, 2],
        np.ones((2, 2)),
    ],
)
def test_what_has_no_rows_is_what_torch_would_collate_of_none(sample: Any) -> None:
    one, two = default_collate([sample]), default_collate([sample, sample])
    assert _shapes(drop_rows(one)) == _shapes(drop_rows(two))
    assert all(shape[0] == 0 for shape in _shapes(drop_rows(one)))
    assert len(_shapes(drop_rows(one))) == len(_shapes(one))


def _shapes(batch: Any) -> list[tuple[int, ...]]:
    """The shape of each column."""
    if isinstance(batch, torch.Tensor):
        return [tuple(batch.shape)]
    if isinstance(batch, dict):
        return [shape for value in batch.values() for shape in _shapes(value)]
    if all(isinstance(one, str) for one in batch):
        return [(len(batch),)]
    return [shape for value in batch for shape in _shapes(value)]


def test_dicts_of_other_classes_and_dataclasses_keep_their_class() -> None:
    batch = {"user": UserDict(ids=torch.ones(2)), "columns": Columns(np.ones(2), ["a", "b"]), "longest": 5}
    empty = drop_rows(batch)
    assert isinstance(empty["user"], UserDict)
    assert empty["user"]["ids"].shape == (0,)
    assert isinstance(empty["columns"], Columns)
    assert empty["columns"].ids.shape == (0,)
    assert empty["columns"].texts == []
    assert empty["longest"] == 5


def test_what_nobody_knows_the_rows_of_is_refused() -> None:
    with pytest.raises(ShardingError, match=r"object cannot be cut to no rows. .*tail=\"pad\""):
        drop_rows({"ids": torch.ones(1), "what": object()})


def test_tensors_are_moved_and_all_else_stays() -> None:
    batch = {"ids": torch.ones(2), "pair": Pair(torch.ones(1), ["a"]), "array": np.ones(1), "other": None}
    moved = move(batch, "meta")
    assert moved["ids"].device.type == moved["pair"].ids.device.type == "meta"
    assert moved["pair"].texts == ["a"]
    assert moved["array"] is batch["array"]
    assert moved["other"] is None
