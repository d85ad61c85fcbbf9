"""What is a column and what is not, and how the latter is told."""

from __future__ import annotations

import pickle
import sys
import types
from collections import UserDict, namedtuple
from typing import Any

import numpy as np
import pytest
import torch

from flowsched.batch import BatchError, concat, count_rows, spread, structure, take

Answer = namedtuple("Answer", ["ids"])


class Series:
    """Looks as a pandas column does."""

    def to_numpy(self) -> np.ndarray[Any, Any]:
        return np.zeros(3)


class Frame:
    """Looks as a pandas table does."""

    columns = ("ids",)


Series.__module__ = "pandas.core.series"
Frame.__module__ = "pandas.core.frame"

COLUMNS = {
    "array": np.zeros((4, 2)),
    "array of text": np.array(["a", "bb", "c", "d"]),
    "array of objects": np.array([None, "a", 1, []], dtype=object),
    "array mapped to a file's type": np.zeros(4).view(np.recarray),
    "tensor": torch.zeros(4, 2),
    "bfloat16 tensor": torch.zeros(4, dtype=torch.bfloat16),
    "bool tensor": torch.zeros(4, dtype=torch.bool),
    "parameter": torch.nn.Parameter(torch.zeros(4)),
    "list of text": ["a", "b", "c", "d"],
    "ragged list": [[1], [], [1, 2], [3]],
    "list of anything": [None, (1, 2), {"a": 1}, 3],
}

REFUSED = [
    ("hello", "is a str, which", "[value] * rows"),
    (b"hello", "is a bytes, which", "[value] * rows"),
    (3, "is an int, which", "[value] * rows"),
    (0.5, "is a float, which", "[value] * rows"),
    (True, "is a bool, which", "[value] * rows"),
    (np.float32(1), "is a numpy.float32, which", "[value] * rows"),
    (np.array(1.0), "is a numpy.ndarray with 0 axes, which", "[value] * rows"),
    (torch.tensor(1.0), "is a torch.Tensor with 0 axes, which", "[value] * rows"),
    ((1, 2), "is a tuple, which", "Use a list, e.g. list(value)"),
    (Answer([1]), "Answer, which", "value._asdict()"),
    ({1, 2}, "is a set, which", "a set has no order"),
    (range(3), "is a range, which", "list(value)"),
    (iter([1]), "is a list_iterator, which", "list(value)"),
    (UserDict(a=[1]), "is a collections.UserDict, which", "dict(value)"),
    (Series(), "is a pandas.core.series.Series, which", "value.to_numpy()"),
    (Frame(), "is a pandas.core.frame.Frame, which", "frame[name].to_numpy()"),
    (np.ma.masked_array([1, 2], [True, False]), "MaskedArray, which", "value.filled(...)"),
    (torch.eye(3).to_sparse(), "is a torch.Tensor of layout torch.sparse_coo, which", "value.to_dense()"),
    (memoryview(b"ab"), "is a memoryview, which", "numpy array, a torch tensor or a list"),
    (object(), "is an object, which", "numpy array, a torch tensor or a list"),
]


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS.keys())
def test_arrays_tensors_and_lists_are_columns_bare_and_at_any_depth(column: Any) -> None:
    assert count_rows(column) == 4
    assert count_rows({"a": {"b": column}, "c": None}) == 4


@pytest.mark.parametrize(("value", "found", "mend"), REFUSED, ids=[found for _, found, _ in REFUSED])
def test_anything_else_is_refused_with_its_path_its_type_and_the_mend(
    value: Any, found: str, mend: str
) -> None:
    with pytest.raises(BatchError) as caught:
        count_rows({"answer": {"ids": value}, "text": ["a"]})
    assert str(caught.value).startswith("column 'answer.ids' ")
    assert found in caught.value.problem
    assert mend in caught.value.mend
    assert (caught.value.code, caught.value.column) == ("column-kind", "answer.ids")


@pytest.mark.parametrize("look", [count_rows, structure, lambda batch: take(batch, 0, 1)])
def test_every_function_refuses_what_is_no_column(look: Any) -> None:
    with pytest.raises(
        BatchError, match=r"the batch is a tuple, which is not a column\. Use a dict that names"
    ):
        look(([1], [2]))


def test_a_batch_that_joins_others_is_looked_at_too() -> None:
    with pytest.raises(BatchError, match="column 'b' is a set"):
        concat([{"b": [1]}, {"b": {1}}])
    with pytest.raises(BatchError, match="the batch is an int"):
        spread(3, 0, 1, times=2)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
def test_a_nested_tensor_is_refused_whatever_its_layout(layout: torch.layout) -> None:
    nested = torch.nested.nested_tensor([torch.ones(1), torch.ones(2)], layout=layout)
    with pytest.raises(BatchError, match=r"is a nested torch.*list\(value\.unbind\(\)\)"):
        count_rows({"ids": nested})


@pytest.mark.parametrize(
    ("batch", "sentence"),
    [
        ({1: [1]}, r"the batch has the key 1 \(int\)"),
        ({"": [1]}, "the batch has an empty name"),
        ({"a": {None: [1]}}, r"the dict of column 'a' has the key None \(NoneType\)"),
    ],
)
def test_keys_are_names(batch: Any, sentence: str) -> None:
    with pytest.raises(BatchError, match=sentence) as caught:
        structure(batch)
    assert caught.value.code == "column-key"


def test_a_torch_that_is_still_being_imported_holds_no_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    assert count_rows({"a": np.zeros(2), "b": [1, 2]}) == 2
    with pytest.raises(BatchError, match="'a' is a str"):
        count_rows({"a": "text"})


def test_an_error_crosses_processes_whole() -> None:
    with pytest.raises(BatchError) as caught:
        count_rows({"a": (1,)})
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is BatchError
    assert str(again) == str(caught.value)
    assert (again.problem, again.mend, again.code, again.column) == (
        caught.value.problem,
        caught.value.mend,
        "column-kind",
        "a",
    )
