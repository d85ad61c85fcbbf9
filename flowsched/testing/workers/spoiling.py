"""Workers that write into what others read, or forget to return."""

from __future__ import annotations

from typing import Any


def add_one(batch: Any) -> Any:
    return {"n": batch["n"] + 1, "text": list(batch["text"])}


def write_into_an_array(batch: Any) -> Any:
    batch["n"] *= 0
    return batch


def write_into_a_list(batch: Any) -> Any:
    batch["text"].reverse()
    return batch


def write_into_the_dict(batch: Any) -> Any:
    batch["extra"] = batch.pop("n")
    return batch


def give_back(batch: Any) -> Any:
    return batch


def give_back_first(batch: Any, _: Any) -> Any:
    return batch


def forget_to_return(batch: Any) -> Any:
    batch["n"] + 1
