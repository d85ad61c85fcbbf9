"""The processes of a group: what each tells all others, and rows on their way between them."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist

from flowsched.errors import Problem, ProblemsError
from flowsched.sharding import ShardingError

_FRAME = 2048  # bytes that each process tells at once; what does not fit follows in a second round
_HEAD = 8  # of them, for the length


class OtherCallError(ProblemsError):
    """Processes of a group that were called for one thing each."""

    code = "other-call"


class Peers:
    """The processes of a group, and this one among them. One process without a group is alone.

    Args:
        process_group: likewise; the default group if it is None.

    Attributes:
        rank: this process's number in the group.
        size: how many processes there are.

    Raises:
        ShardingError: this process is not in the group; or a launcher started several, and they have no group.
    """

    def __init__(self, process_group: dist.ProcessGroup | None = None) -> None:
        grouped = dist.is_available() and dist.is_initialized()
        self._group: Any = None
        self.rank, self.size, self._backends = 0, 1, {"cpu"}
        if grouped:
            self._group = process_group or dist.group.WORLD
            self.rank, self.size = dist.get_rank(self._group), dist.get_world_size(self._group)
        if self.rank < 0:
            raise _refuse(
                "process_group",
                f"this process, rank {dist.get_rank()} of the default group, is not in it",
                "Call only where the group has a rank",
            )
        if grouped:
            config = dist.get_backend_config(self._group)
            self._backends = {part.partition(":")[0] for part in config.split(",")}
        elif (told := os.environ.get("WORLD_SIZE", "1")) != "1":
            raise _refuse(
                "process_group",
                f"the launcher started {told} processes, and they have no process group to reach each other by",
                "Call torch.distributed.init_process_group() first",
            )

    def device_for(self, kind: str) -> torch.device:
        """Return where tensors must be to travel, given the kind of device that they are on."""
        found = next((one for one in (kind, "cpu") if one in self._backends), min(self._backends))
        return torch.device("cpu") if found == "cpu" else torch.device(found, _current_device(found))

    def tell(self, call: str, message: Any) -> list[Any]:
        """Tell all processes something small, and return what each tells, by rank. All must call it.

        One collective, or two where somebody's message has more than two kilobytes.

        Args:
            call: what this process was called for, by name.
            message: anything that pickles.

        Raises:
            OtherCallError: another process was called for something else; raised on all of them.
        """
        if self.size == 1:
            return [message]
        told = self._tell(pickle.dumps((call, message)))
        calls = [name for name, _ in told]
        if len(set(calls)) > 1:
            raise OtherCallError(call, list(_say_other_calls(calls)))
        return [one for _, one in told]

    def _tell(self, data: bytes) -> list[Any]:
        heads = self._all_gather(len(data).to_bytes(_HEAD, "little") + data[: _FRAME - _HEAD], _FRAME)
        lengths = [int.from_bytes(head[:_HEAD], "little") for head in heads]
        bodies = [head[_HEAD:] for head in heads]
        if (rest := max(lengths) - (_FRAME - _HEAD)) > 0:
            tails = self._all_gather(data[_FRAME - _HEAD :], rest)
            bodies = [body + tail for body, tail in zip(bodies, tails, strict=True)]
        return [pickle.loads(body[:length]) for body, length in zip(bodies, lengths, strict=True)]

    def exchange(
        self,
        own: Sequence[torch.Tensor],
        targets: Sequence[int],
        buffers: Mapping[int, Sequence[torch.Tensor]],
    ) -> Iterator[int]:
        """Send this process's bytes to others, receive theirs, yield each rank whose bytes are there; own first.

        All is under way when the first is yielded, so that two exchanges may overlap.

        Args:
            own: uint8 tensors, on the devices on which they can travel.
            targets: ranks that get them.
            buffers: by rank of those that send, what to receive into, of the sizes that they send.
        """
        ops: list[Any] = []
        of_rank: list[int] = []
        for distance in range(1, self.size):
            source, target = (self.rank - distance) % self.size, (self.rank + distance) % self.size
            ops += [self._op(dist.irecv, part, source) for part in buffers.get(source, ()) if len(part)]
            of_rank += [source] * (len(ops) - len(of_rank))
            if target in targets:
                ops += [self._op(dist.isend, part, target) for part in own if len(part)]
            of_rank += [-1] * (len(ops) - len(of_rank))
        works = dist.batch_isend_irecv(ops) if ops else []
        yield self.rank
        if len(works) != len(ops):  # one that stands for all
            for work in works:
                work.wait()
            works, of_rank = [], []
        for source in buffers:
            for work, rank in zip(works, of_rank, strict=True):
                if rank == source:
                    work.wait()
            yield source
        for work, rank in zip(works, of_rank, strict=True):
            if rank == -1:
                work.wait()

    def _op(self, op: Any, tensor: torch.Tensor, rank: int) -> Any:
        return dist.P2POp(op, tensor, dist.get_global_rank(self._group, rank), self._group)

    def _all_gather(self, data: bytes, size: int) -> list[bytes]:
        device = self.device_for("cpu")
        own = torch.frombuffer(bytearray(data.ljust(size, b"\0")), dtype=torch.uint8).to(device)
        everyone = [torch.empty_like(own) for _ in range(self.size)]
        dist.all_gather(everyone, own, group=self._group)
        return [one.cpu().numpy().tobytes() for one in everyone]


def _current_device(kind: str) -> int:
    return int(getattr(torch, kind).current_device())


def _say_other_calls(calls: Sequence[str]) -> Iterator[Problem]:
    """Yield a problem for each process whose call is not that of the first."""
    for rank, call in enumerate(calls):
        if call != calls[0]:
            said = f"it called {call}, where rank 0 called {calls[0]}"
            mend = "Call the same, in the same order, on all ranks"
            yield Problem("other-call", f"rank {rank}", said, mend)


def _refuse(place: str, message: str, mend: str) -> ShardingError:
    return ShardingError("the processes", [Problem("no-group", place, message, mend)])
