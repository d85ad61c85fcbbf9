"""The backend as the core sees it: options in, live replicas out."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from flowsched.backend import Backend, Deployment, Running
from flowsched.errors import BackendError, FlowschedError, say_known
from flowsched_torch.devices import Devices, checked_devices
from flowsched_torch.launched import is_launched, read_launch, read_number
from flowsched_torch.placing import place_replicas

if TYPE_CHECKING:
    from flowsched.backend import Placement
    from flowsched_torch.forking import Forking
    from flowsched_torch.meeting import Meeting
    from flowsched_torch.together import Ways


Start = Literal["local", "torchrun", "group"]
Where = Literal["first", "all"]

_LONGEST = 1_000_000  # seconds, about what the system's own waits take


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
        device: the device of all other replicas; ``"cuda"`` for the one of their rank, between which tensors go
            by NCCL. What goes to or from a process without a device, and devices of nodes, goes by the host.
            Devices that the rank's machine does not have are refused before anything starts.
        start: how ranks come to be: ``"local"``, started by this process; ``"torchrun"``, started by a
            launcher that has set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; ``"group"``, those of the
            process group that is initialised. None for the one that there is; where some of the launcher's
            variables are set and others are not, that is refused. In the last two, every rank runs the same
            program.
        inputs_on: which of the ranks that run the same program give the inputs of each step. ``"first"``: rank 0,
            what the others give is not looked at; ``"all"``: every rank gives all of them, and none are sent. A
            plain script is the first of one, and all of it: both mean that it gives the inputs, which are sent
            to the ranks that it has started. With ``start="local"``, ``"all"`` is refused.
        outputs_on: which of them get the outputs, likewise. ``"first"``: rank 0; ``"all"``: every rank. A plain
            script gets them either way.
        interface: the network interface by which hosts that run the same program reach each other; None for
            GLOO_SOCKET_IFNAME, or the one that leads to MASTER_ADDR.
        grace: seconds that closing waits for workers that a failure or an interruption left in a call; then
            the processes that the backend has started are killed.
        timeout: seconds after which a rank is given up whose process neither answers nor dies, and in which ranks
            that run the same program must have come to start the session. Constructors and calls may take as long
            as they do, since a rank answers meanwhile.
        build_timeout: seconds in which the constructors of all replicas must have returned; None for as long as
            they take. The error names those that have not. A rank that the backend has started is then ended; one
            that runs your program ends when its constructor returns.

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
        start: Start | None = None,
        inputs_on: Where = "first",
        outputs_on: Where = "first",
        interface: str | None = None,
        grace: float = 0.25,
        timeout: float = 300.0,
        build_timeout: float | None = None,
    ) -> None:
        self._ranks = None if ranks is None else _checked_number("ranks", ranks, 1, whole=True)
        self._placement = placement
        self._devices = checked_devices(devices, device)
        self._given_start: Start | None = _checked_choice(
            "start", start, (None, "local", "torchrun", "group")
        )
        self._inputs = _checked_choice("inputs_on", inputs_on, ("first", "all"))
        self._outputs = _checked_choice("outputs_on", outputs_on, ("first", "all"))
        if start == "local":
            _refuse_all(inputs_on=inputs_on, outputs_on=outputs_on)
        self._interface = interface
        self._grace = _checked_number("grace", grace, 0)
        self._timeout = _checked_number("timeout", timeout, 1, _LONGEST)
        if build_timeout is not None:
            _checked_number("build_timeout", build_timeout, 0, _LONGEST)
        self._build_timeout = build_timeout
        self._forking: Forking | None = None

    def start(self, deployment: Deployment) -> Running:
        """Build all replicas in parallel, each on its rank."""
        if self._way() != "local":
            return self._start_together(deployment)
        placement = place_replicas(deployment, self._ranks, self._placement)
        self._refuse_devices(deployment, placement, [(rank, rank) for rank in range(placement.ranks)])
        forking = self._fork_from()
        from flowsched_torch.local import LocalRanks

        return LocalRanks(
            deployment, placement, self._devices, forking, self._grace, self._timeout, self._build_timeout
        )

    def refuse(self, error: Exception) -> None:
        """Have the ranks that would start a session together raise ``error``, all of them within seconds."""
        from flowsched_torch.refusing import PATIENCE, tell_refused

        with suppress(FlowschedError):  # nobody is told then, and ``error`` is raised here
            if self._way() != "local":
                tell_refused(self._meet(min(self._timeout, PATIENCE)), error)

    def is_home(self) -> bool:
        """Return whether this is rank 0, or the program that has started the ranks."""
        way = self._way()
        if way == "group":
            from flowsched_torch.meeting import rank_in_group

            return rank_in_group() == 0
        return way == "local" or read_launch().rank == 0

    def needs_inputs(self) -> bool:
        """Return whether this rank must give the inputs of each step."""
        return self._inputs == "all" or self.is_home()

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

    def _way(self) -> Start:
        """Return how ranks come to be."""
        if self._given_start is not None:
            return self._given_start
        if _group_is_initialised():
            return "group"
        return "torchrun" if is_launched() else "local"

    def _start_together(self, deployment: Deployment) -> Running:
        from flowsched_torch.home_rank import HomeRank
        from flowsched_torch.other_rank import OtherRank
        from flowsched_torch.refusing import tell_refused

        meeting = self._meet(self._timeout)
        try:
            ways = self._ways(deployment, meeting)
        except FlowschedError as error:
            tell_refused(meeting, error)
            raise
        return (HomeRank if meeting.rank == 0 else OtherRank)(deployment, meeting, ways)

    def _meet(self, seconds: float) -> Meeting:
        """Return the meeting of all ranks that start the session together."""
        from flowsched_torch.meeting import meet_as_launched, meet_in_group

        return meet_in_group() if self._way() == "group" else meet_as_launched(seconds)

    def _ways(self, deployment: Deployment, meeting: Meeting) -> Ways:
        """Return how the ranks work together."""
        from flowsched_torch.meeting import own_address
        from flowsched_torch.together import Ways

        if self._ranks not in (None, meeting.size):
            raise BackendError(
                f"ranks is {self._ranks}, and {meeting.size} run this program. Leave ranks= out, or start as many"
            )
        placement = place_replicas(deployment, meeting.size, self._placement, home=0)
        local_rank = read_number("LOCAL_RANK", 0) if os.environ.get("LOCAL_RANK") else meeting.rank
        self._refuse_devices(deployment, placement, [(meeting.rank, local_rank)])
        return Ways(
            placement=placement,
            devices=self._devices,
            local_rank=local_rank,
            inputs=self._inputs,
            outputs=self._outputs,
            host=own_address(self._interface) if meeting.rank == 0 else "",
            timeout=self._timeout,
            build_timeout=self._build_timeout,
        )

    def _refuse_devices(
        self, deployment: Deployment, placement: Placement, ranks: Sequence[tuple[int, int]]
    ) -> None:
        """Refuse devices that are given to no node, or are not on this machine, which runs these ranks."""
        self._devices.check(list(deployment.replicas))
        if self._devices != Devices():
            from flowsched_torch.devices_here import refuse_missing_devices

            refuse_missing_devices(self._devices, placement, deployment.replicas, ranks)

    def _fork_from(self) -> Forking:
        """Return the process that ranks are forked from, started if need be."""
        from flowsched_torch.forking import Forking

        if self._forking is None or not self._forking.is_alive:
            self._forking = Forking()
        return self._forking


def _group_is_initialised() -> bool:
    distributed = sys.modules.get("torch.distributed")
    return distributed is not None and distributed.is_available() and distributed.is_initialized()


def _refuse_all(**where: str) -> None:
    for name, given in where.items():
        if given == "all":
            raise BackendError(
                f"{name}='all' is for programs that every rank runs, and with start='local' this program alone "
                f"gives the inputs and gets the outputs. Leave {name}= out, or start= for a program that runs "
                "under torchrun, too"
            )


def _checked_choice(name: str, value: Any, choices: Sequence[str | None]) -> Any:
    if value not in choices:
        known = [choice for choice in choices if choice is not None]
        raise BackendError(f"{name} is {value!r}. {say_known(str(value), known, 'choices')}")
    return value


def _checked_number(name: str, value: float, least: float, most: float = inf, *, whole: bool = False) -> Any:
    kinds = int if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value <= most:
        what = f"a whole number of {least}" if whole else f"seconds, {least}"
        limit = "or more" if most == inf else f"to {most:,}"
        raise BackendError(f"{name} is {value!r} ({type(value).__name__}). Give {what} {limit}")
    return value
