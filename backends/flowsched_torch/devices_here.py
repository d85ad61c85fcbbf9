"""Whether the devices that replicas are to be given are on this machine, found before anything starts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
import torch.distributed

from flowsched.errors import BackendError, say_known
from flowsched.programs import Placement
from flowsched_torch.devices import Devices
from flowsched_torch.losses import served_replicas

dist: Any = torch.distributed  # some of whose names it does not export to type checkers
_EVERYWHERE = ("cpu", "meta")
_COMMON = ("cpu", "cuda", "meta", "mps", "xpu")


def refuse_missing_devices(
    devices: Devices, placement: Placement, built: Mapping[str, int], ranks: Iterable[tuple[int, int]]
) -> None:
    """Refuse devices of replicas that this machine does not have.

    Args:
        devices: what replicas are given.
        placement: the rank of each replica.
        built: how many replicas of each node are built.
        ranks: those of this machine to look at: each with its place among the ranks of its machine.

    Raises:
        BackendError: it says what was asked for, what there is, and how to mend it.
    """
    looked_at = set()
    for rank, local_rank in ranks:
        for place, device in _asked(devices, served_replicas(placement, built, rank), rank, local_rank):
            if device not in looked_at:
                _refuse_missing(place, device)
                looked_at.add(device)
    if devices.of_ranks == "cuda" and not dist.is_nccl_available():
        raise BackendError(
            f"device='cuda' moves tensors by NCCL, which torch {torch.__version__} here was built without. "
            "Install a torch built with it, or give devices= to each node, between which tensors go by the host"
        )


def _asked(
    devices: Devices, served: Iterable[tuple[str, int]], rank: int, local_rank: int
) -> Iterator[tuple[str, str]]:
    """Yield the devices of a rank, each with what asked for it."""
    if (direct := devices.direct_device(local_rank)) is not None:
        yield f"device='cuda' gives each rank one device, rank {rank}", direct
    for node, replica in served:
        device = devices.device_of(node, replica, local_rank)
        if device is not None:
            whose = f"devices= of node {node!r}" if node in devices.of_nodes else "device="
            yield f"{whose} gives replica {replica} of {node!r}", device


def _refuse_missing(place: str, device: str) -> None:
    found = re.fullmatch(r"([a-z]+)(?::(\d+))?", device)
    kind, index = (found[1], int(found[2] or 0)) if found else (device.partition(":")[0], 0)
    if found is None or not _is_known(kind):
        known = say_known(kind, _COMMON, "kinds of devices")
        raise BackendError(
            f"{place} the device {device!r}, which torch does not know. {known}, e.g. 'cuda:0'"
        )
    count = _count(kind)
    if count is None or index < count:
        return
    there = f"{kind}:0" if count == 1 else f"{kind}:0 to {kind}:{count - 1}"
    has = f"has {there}" if count else f"finds no {kind} device"
    mend = (
        f"Give fewer ranks, or devices= of those that are there, or look at {kind.upper()}_VISIBLE_DEVICES"
        if count
        else f"Install a torch built for {kind} and the driver of the device, or give another device, or none"
    )
    raise BackendError(
        f"{place} the device {device!r}, and torch {torch.__version__} {has} on this machine. {mend}"
    )


def _is_known(kind: str) -> bool:
    try:
        return torch.device(kind).type == kind
    except RuntimeError:
        return False


def _count(kind: str) -> int | None:
    """Return how many devices of a kind there are; None for as many as one names, or where torch cannot tell."""
    if kind in _EVERYWHERE:
        return None
    count = getattr(getattr(torch, kind, None), "device_count", None)
    return None if count is None else int(count())
