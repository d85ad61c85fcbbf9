"""Workers that return something that is no batch of the rows that they must make."""

from __future__ import annotations

from typing import Any

import numpy as np


def one_row_more(numbers: Any) -> Any:
    return np.concatenate([numbers, numbers[:1]])


def one_number(numbers: Any) -> Any:
    return numbers.sum()


def no_axes(numbers: Any) -> Any:
    return np.array(numbers.sum())


def no_axes_tensor(numbers: Any) -> Any:
    import torch  # only where it is used

    return torch.tensor(int(numbers.sum()))


def some_text(_: Any) -> Any:
    return "fine"


def a_tuple(numbers: Any) -> Any:
    return numbers, numbers


def a_nested_tuple(numbers: Any) -> Any:
    return {"scores": {"all": (1,) * len(numbers)}}


def a_generator(numbers: Any) -> Any:
    return (number for number in numbers)


def unequal_columns(numbers: Any) -> Any:
    return {"long": numbers, "short": numbers[1:]}


def numbered_key(numbers: Any) -> Any:
    return {1: numbers}


def other_keys_later(numbers: Any) -> Any:
    return {"early" if numbers[0] == 0 else "late": numbers}


def other_dtype_later(numbers: Any) -> Any:
    return numbers if numbers[0] == 0 else numbers.astype(np.float32)


def other_kind_later(numbers: Any) -> Any:
    return numbers if numbers[0] == 0 else numbers.tolist()


def masked_later(numbers: Any) -> Any:
    return numbers if numbers[0] < 4 else np.ma.masked_greater(numbers, 5)


def none_later(numbers: Any) -> Any:
    return numbers if numbers[0] == 0 else None


def answers_of_all_first(batch: Any) -> Any:
    return batch[:1]


def no_rows(numbers: Any) -> Any:
    return numbers[:0]


def keep_even(numbers: Any) -> Any:
    """Return columns of different lengths, as a filter that forgets one of them does."""
    return {"ids": numbers, "reward": numbers[numbers % 2 == 0]}
