"""Whatever loader there is, made to yield which samples it has in place of the samples themselves.

The loader runs as it is, with its own samplers and whatever a launcher has put around them. Only what stands at its
two ends is exchanged while it is read: the data set, or what makes a batch of samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset

from flowsched.data.digests import digest_samples

_INNER = ("base_dataloader", "dataloader", "loader", "_loader")
_NO_WORKERS = {
    "num_workers": 0,
    "num_local_io_workers": 0,
    "timeout": 0,
    "pin_memory": False,
    "_DataLoader__multiprocessing_context": None,
}


class Numbers:
    """A data set whose samples are their own ids.

    Args:
        count: how many there are.
    """

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: Any) -> torch.Tensor:
        """Return the id, or the ids, that are asked for.

        Raises:
            TypeError: samples are not asked for by number.
        """
        if isinstance(index, slice):
            return torch.arange(self.count)[index]
        found = torch.as_tensor(index)
        if found.dtype.is_floating_point or found.dtype.is_complex:
            raise TypeError(f"samples are asked for by {type(index).__name__}, not by number")
        return found.to(torch.int64)


def attributes(value: Any) -> dict[str, Any]:
    """Return what an object holds, which can be written; nothing where it holds nothing by name."""
    found: dict[str, Any] = getattr(value, "__dict__", {})
    return found


def holders(loader: Any) -> list[Any]:
    """Return the loader and the loaders within it, the outermost first."""
    found = [loader]
    for one in found:
        inside = [attributes(one)[name] for name in _INNER if name in attributes(one)]
        found += [inner for inner in inside if inner is not None and not any(inner is seen for seen in found)]
    return found


def find_dataset(loader: Any) -> Any:
    """Return the data set that a loader, or a sampler, is about; None if it does not say."""
    for name in ("dataset", "data_source", "sampler", "batch_sampler"):
        for holder in holders(loader):
            found = attributes(holder).get(name)
            if found is not None and name in ("sampler", "batch_sampler"):
                found = find_dataset(found)
            if found is not None:
                return found
    return None


def has_numbers(dataset: Any) -> bool:
    """Return whether samples of a data set are asked for by number."""
    plain = hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")
    return plain and not isinstance(dataset, IterableDataset)


@contextmanager
def yielding_ids(loader: Any) -> Iterator[None]:
    """Let a loader yield (n,) ids in place of batches; none of its data is loaded.

    Raises:
        TypeError: it holds no data set whose samples are asked for by number.
    """
    dataset = find_dataset(loader)
    if not has_numbers(dataset):
        raise TypeError("the loader holds no data set whose samples have numbers")
    changes: dict[str, Any] = {"dataset": Numbers(len(dataset)), "collate_fn": _join_ids, **_NO_WORKERS}
    with _exchanged(holders(loader), changes):
        yield


@contextmanager
def yielding_digests(loader: Any) -> Iterator[None]:
    """Let a loader yield (n, 2) digests of samples in place of batches.

    Raises:
        TypeError: nothing in it makes batches of samples.
    """
    found = holders(loader)
    if not any("collate_fn" in attributes(one) for one in found):
        raise TypeError("the loader has no collate_fn")
    with _exchanged(found, {"collate_fn": digest_samples, "pin_memory": False}):
        yield


@contextmanager
def _exchanged(found: Sequence[Any], changes: dict[str, Any]) -> Iterator[None]:
    """Exchange attributes wherever they are set, in place: a DataLoader that is made refuses it otherwise."""
    spaces = [attributes(one) for one in found]
    written = [(space, name) for space in spaces for name in changes if name in space]
    before = [(space, name, space[name]) for space, name in written]
    iterators = [(space, space["_iterator"]) for space in spaces if space.get("_iterator") is not None]
    try:
        for space, name in written:
            space[name] = changes[name]
        for space, _ in iterators:
            space["_iterator"] = None  # workers that stay would go on with what they have
        yield
    finally:
        for space, name, value in before:
            space[name] = value
        for space, iterator in iterators:
            space["_iterator"] = iterator


def _join_ids(ids: Any) -> torch.Tensor:
    if isinstance(ids, torch.Tensor):
        return ids.reshape(-1)
    return torch.cat([one.reshape(-1) for one in ids]) if len(ids) else torch.empty(0, dtype=torch.int64)


def is_loader(value: Any) -> bool:
    """Return whether something can be read, rather than called for what can be."""
    return isinstance(value, DataLoader) or (hasattr(value, "__iter__") and not isinstance(value, type))
