"""Which device a replica is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from flowsched.errors import BackendError, say_known


@dataclass(frozen=True)
class Devices:
    """What replicas are given as ``context.device``.

    Attributes:
        of_nodes: for a node that has replicas of its own, the devices that its replicas are given in turn.
        of_ranks: ``"cuda"``: all other replicas are given the one of their rank, ``cuda:0`` for the first on
            its machine; another device: they are given that; None for none.
    """

    of_nodes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    of_ranks: str | None = None

    def device_of(self, node: str, replica: int, local_rank: int) -> str | None:
        """Return the device of a replica; ``local_rank`` counts the ranks of its machine."""
        if node in self.of_nodes:
            given = self.of_nodes[node]
            return given[replica % len(given)]
        return f"cuda:{local_rank}" if self.of_ranks == "cuda" else self.of_ranks

    def direct_device(self, local_rank: int) -> str | None:
        """Return the device of a rank between which tensors go by NCCL; None where they go by the host."""
        return f"cuda:{local_rank}" if self.of_ranks == "cuda" else None

    def check(self, nodes: Sequence[str]) -> None:
        """Refuse devices of nodes that have no replicas of their own.

        Raises:
            BackendError: it names the node.
        """
        for node in self.of_nodes:
            if node not in nodes:
                mend = say_known(str(node), list(nodes), "nodes with replicas of their own")
                raise BackendError(f"devices names {node!r}, which has no replicas of its own. {mend}")


def checked_devices(devices: object, device: object) -> Devices:
    """Return the devices that the options of a backend name.

    Raises:
        BackendError: an option is none.
    """
    if devices is not None and not isinstance(devices, Mapping):
        raise BackendError(
            f"devices is {devices!r}. Give the devices of each node, e.g. devices={{'policy': ['cuda:0']}}"
        )
    of_nodes = dict(devices or {})
    for node, given in of_nodes.items():
        if not isinstance(given, list | tuple) or not given:
            raise BackendError(
                f"devices of node {node!r} are {given!r}. Give a list of at least one device for its replicas"
            )
    if device is not None and not isinstance(device, str):
        raise BackendError(f"device is {device!r}. Give the name of a device, e.g. device='cuda'")
    return Devices(of_nodes, device)
