"""The backend as the core sees it: options in, live replicas out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from flowsched.backend import Backend, Deployment, Running
from flowsched.errors import BackendError
from flowsched_torch.devices import checked_devices
from flowsched_torch.placing import place_replicas

if TYPE_CHECKING:
    from flowsched_torch.forking import Forking


class TorchBackend(Backend):
    """Runs replicas on ranks of ``torch.distributed``; data goes from rank to rank.

    Every rank knows the plan and runs its own program of it (``plan.programs()``), so that nothing is decided
    or routed while it runs. From a plain script the ranks are processes that the backend starts. They are forked
    from one that it keeps, ready with torch, for as long as the backend is there: one that serves several
    sessions starts all but the first of them in a fraction of a second.

    Args:
        ranks: how many ranks serve the replicas, which are dealt to them in turn; None for one a replica, up to
            32 or 4 for each core, whichever is more.
        placement: the rank of each replica by the name of its node, ``{"policy": [0, 1]}``, instead.
        devices: for a node that has replicas of its own, the devices that its replicas are given in turn as
            ``context.device``.
        device: the device of all other replicas; ``"cuda"`` for the one of their rank.
        grace: seconds that closing waits for workers that a failure or an interruption left in a call; then
            the processes that the backend has started are killed.
        timeout: seconds after which a rank that neither answers nor dies is given up.

    Raises:
        BackendError: an option is not one of these.
    """

    name: ClassVar[str] = "torch"

    def __init__(
        self,
        ranks: int | None = None,
        placement: Mapping[str, Sequence[int]] | None = None,
        devices: Mapping[str, Sequence[str]] | None = None,
        device: str | None = None,
        grace: float = 0.25,
        timeout: float = 300.0,
    ) -> None:
        self._ranks = None if ranks is None else _checked_number("ranks", ranks, 1, whole=True)
        self._placement = placement
        self._devices = checked_devices(devices, device)
        self._grace = _checked_number("grace", grace, 0)
        self._timeout = _checked_number("timeout", timeout, 1)
        self._forking: Forking | None = None

    def start(self, deployment: Deployment) -> Running:
        """Build all replicas in parallel, each on its rank."""
        self._devices.check(list(deployment.replicas))
        placement = place_replicas(deployment, self._ranks, self._placement)
        forking = self._fork_from()
        from flowsched_torch.local import LocalRanks

        return LocalRanks(deployment, placement, self._devices, forking, self._grace, self._timeout)

    @classmethod
    def problem(cls) -> str | None:
        """Return why torch cannot be used here, or None."""
        if not hasattr(os, "fork"):
            return "it forks processes, which this system cannot. Use another backend"
        try:
            import torch.distributed
        except ImportError as error:
            return f'torch cannot be imported ({error}). Install it: pip install "flowsched[torch]"'
        if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
            return "this torch was built without gloo. Install one with it: pip install torch"
        return None

    @classmethod
    def describe(cls) -> Mapping[str, Any]:
        """Return the version of torch, the accelerators, and where ranks are started."""
        import torch

        return {"torch": torch.__version__, "cuda_devices": torch.cuda.device_count()}

    def _fork_from(self) -> Forking:
        """Return the process that ranks are forked from, started if need be."""
        from flowsched_torch.forking import Forking

        if self._forking is None or not self._forking.is_alive:
            self._forking = Forking()
        return self._forking


def _checked_number(name: str, value: float, least: float, *, whole: bool = False) -> Any:
    kinds = int if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not value >= least:
        what = f"a whole number of {least}" if whole else f"seconds, {least}"
        raise BackendError(f"{name} is {value!r} ({type(value).__name__}). Give {what} or more")
    return value
