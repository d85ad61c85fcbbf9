"""Describing and comparing structures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from flowsched.batch import Padding, Structure, differences, structure, trailing_conflicts

BATCHES: dict[str, Any] = {
    "nothing": None,
    "list": ["a", "b"],
    "array": np.zeros((2, 3)),
    "wide array": np.zeros((2, 4)),
    "flat array": np.zeros(2),
    "int array": np.zeros((2, 3), dtype=int),
    "tensor": torch.zeros(2, 3, dtype=torch.float64),
    "dict": {"a": np.zeros((2, 3)), "b": ["a", "b"]},
    "deeper dict": {"a": np.zeros((2, 3)), "b": {"c": ["a", "b"]}},
    "dict with None": {"a": np.zeros((2, 3)), "b": None},
    "dict with an empty dict": {"a": np.zeros((2, 3)), "b": {}},
    "smaller dict": {"a": np.zeros((2, 3))},
}


@pytest.mark.parametrize("one", BATCHES)
@pytest.mark.parametrize("other", BATCHES)
def test_structures_are_equal_only_where_keys_kinds_dtypes_axes_and_shapes_are(one: str, other: str) -> None:
    left, right = structure(BATCHES[one]), structure(BATCHES[other])
    assert (left == right) == (one == other)
    assert bool(differences(left, right)) == (left.columns != right.columns)
    if one == other:
        assert hash(left) == hash(right)


def test_the_number_of_rows_the_order_of_keys_and_the_width_of_text_do_not_matter() -> None:
    batch = {"a": np.array(["x"]), "b": {"c": torch.zeros(1, 2), "d": [1]}}
    other = {"b": {"d": [1, 2], "c": torch.ones(2, 2)}, "a": np.array(["xyz", ""])}
    assert structure(batch) == structure(other)


def test_a_structure_is_frozen_and_keeps_no_column_alive() -> None:
    described = structure({"a": np.zeros((2, 3)), "b": [object()]})
    assert isinstance(described, Structure)
    assert {described: 1}[described] == 1
    with pytest.raises(AttributeError):
        described.columns = ()  # type: ignore[misc]
    assert not any(isinstance(part, np.ndarray | list) for leaf in described.columns for part in leaf)


def test_shapes_of_rows_are_no_difference_and_are_kept_apart() -> None:
    narrow, wide = structure(np.zeros((2, 3, 4))), structure(np.zeros((5, 3, 6)))
    assert differences(narrow, wide) == []
    assert narrow.columns == wide.columns
    assert (narrow.trailing, wide.trailing) == (((3, 4),), ((3, 6),))


def test_a_conflict_of_shapes_is_found_without_joining() -> None:
    structures = [structure({"a": np.zeros((1, width)), "b": [1]}) for width in (3, 3, 5)]
    conflict = trailing_conflicts(structures)
    assert conflict is not None
    assert (conflict.column, conflict.positions, conflict.shapes) == ("a", (0, 2), ((3,), (5,)))
    assert str(conflict) == (
        "column 'a' has rows of shape (3,) in batch 0 and (5,) in batch 2. Declare its padding on the model, "
        "e.g. @pads(a=0), or return rows of one shape from every call"
    )


def test_no_conflict_is_found_where_shapes_agree_or_padding_is_declared() -> None:
    structures = [structure({"a": np.zeros((1, width)), "b": [1]}) for width in (3, 5)]
    assert trailing_conflicts(structures[:1] * 3) is None
    assert trailing_conflicts([]) is None
    assert trailing_conflicts(structures, {"a": Padding(0)}) is None


@pytest.mark.parametrize(
    ("dtype", "fitting", "unfitting"),
    [
        (np.dtype("u1"), [0, 255, 3.0, True], [-1, 256, 0.5, float("nan"), float("inf")]),
        (np.dtype("i8"), [-100, 2**62], [2**63, 1e300]),
        (np.dtype("?"), [True, 0, 1.0], [2, -1, 0.5]),
        (np.dtype("f2"), [0, 65504, float("nan"), float("-inf"), 0.1], [65505.0, 1e30]),
        (np.dtype("c8"), [1.5], [1e300]),
        (np.dtype("O"), [0, 0.5, True], []),
        (np.dtype("U3"), [], [0]),
        (np.dtype("M8[s]"), [], [0]),
        (np.dtype([("a", "i4")]), [], [0]),
        (np.dtype("V4"), [], [0]),
        (torch.uint8, [0, 255], [-1, 0.5, float("nan")]),
        (torch.bool, [True, 0], [2]),
        (torch.bfloat16, [-100, float("inf"), 1e38], [1e39]),
        (torch.float16, [65504], [1e6]),
        (torch.int64, [-(2**63)], [2**63]),
    ],
    ids=str,
)
def test_a_padding_value_must_fit_the_dtype(dtype: Any, fitting: list[Any], unfitting: list[Any]) -> None:
    make = torch.zeros if isinstance(dtype, torch.dtype) else np.zeros
    structures = [structure(make((1, width), dtype=dtype)) for width in (2, 3)]
    for value in fitting:
        assert trailing_conflicts(structures, {"": Padding(value)}) is None
    for value in unfitting:
        conflict = trailing_conflicts(structures, {"": Padding(value)})
        assert conflict is not None
        assert f"the padding value {value!r} does not fit" in conflict.problem
