"""Tensors on accelerators: their shapes go by gloo, as all that moves, and their numbers from device to device.

NCCL asks that all ranks begin what they exchange in one order, since a send may wait until it is received. That is
what programs lowered with ``rendezvous=True`` promise, and the ranks keep to the order of their actions then.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Protocol

import torch
import torch.distributed

from flowsched.errors import BackendError
from flowsched_torch.mesh import Work

dist: Any = torch.distributed  # some of whose names it does not export to type checkers


class Direct(Protocol):
    """Moves tensors of known shape between the devices of ranks.

    Attributes:
        device: of this rank.
    """

    device: torch.device

    def takes(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor moves this way."""

    def send(self, tensor: torch.Tensor, peer: int) -> Work:
        """Begin to send; may wait until the peer receives."""

    def receive(self, tensor: torch.Tensor, peer: int) -> None:
        """Receive into all of a tensor, before whatever uses it next on the device."""

    def close(self) -> None:
        """Leave the group, from any thread; whoever waits for a tensor raises."""


class NcclDirect:
    """Moves tensors by NCCL; the arguments are those of :class:`flowsched_torch.mesh.Mesh`.

    Args:
        device: of this rank, which no other has.

    Raises:
        BackendError: this torch has no NCCL, or the machine no such device.
    """

    def __init__(self, store: Any, rank: int, size: int, device: str) -> None:
        if not (torch.cuda.is_available() and dist.is_nccl_available()):
            raise BackendError(
                f"device {device!r} needs CUDA and NCCL, and torch {torch.__version__} finds "
                f"{torch.cuda.device_count()} CUDA devices here. Install a torch built for CUDA, or leave "
                "device= out"
            )
        self.device = torch.device(device)
        torch.cuda.set_device(self.device)
        self._group: Any = dist.ProcessGroupNCCL(dist.PrefixStore("nccl", store), rank, size)

    def takes(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is on a CUDA device."""
        return tensor.is_cuda

    def send(self, tensor: torch.Tensor, peer: int) -> Work:
        """Begin to send."""
        return self._group.send([tensor], peer, 0)

    def receive(self, tensor: torch.Tensor, peer: int) -> None:
        """Receive into all of a tensor."""
        self._group.recv([tensor], peer, 0).wait()

    def close(self) -> None:
        """Leave the group."""
        with suppress(RuntimeError):
            self._group.abort()
