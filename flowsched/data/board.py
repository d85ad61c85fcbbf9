"""What ranks tell each other while a loader is read, beside whatever the loader itself sends."""

from __future__ import annotations

import os
import pickle
import time
import zlib
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any, Protocol

import torch.distributed as dist
from torch._C._distributed_c10d import (
    HashStore,
    PrefixStore,
    TCPStore,
)  # those of dist, which mypy does not see
from torch._C._distributed_c10d import Store as TorchStore

_CHUNK = 4 << 20  # bytes; a store refuses values above 8 MiB
_POLL = 0.02


class Store(Protocol):
    """What a board needs of a store of ``torch.distributed``."""

    def set(self, key: str, value: Any, /) -> None:
        """Write."""

    def get(self, key: str, /) -> bytes:
        """Read what is there."""

    def check(self, keys: list[str], /) -> bool:
        """Return whether keys are there."""

    def add(self, key: str, amount: int, /) -> int:
        """Add to a number, from 0, and return it."""


class Board:
    """Where ranks leave messages for each other; nobody waits for more than the message that they ask for.

    Args:
        store: what holds them.
        rank: this process's number.
        ranks: how many processes there are.
    """

    def __init__(self, store: Store, rank: int, ranks: int) -> None:
        self._store = store
        self.rank, self.ranks = rank, ranks
        self._turn = store.add(f"turns/{rank}", 1)  # the same on all ranks, and of no board before this one

    def put(self, name: str, message: Any) -> None:
        """Leave a message of this rank's under a name that it has not used."""
        data = zlib.compress(pickle.dumps(message), 1)
        parts = range(0, len(data), _CHUNK)
        for number, start in enumerate(parts):
            self._store.set(f"{self._turn}/{name}/{self.rank}/{number}", data[start : start + _CHUNK])
        self._store.set(f"{self._turn}/{name}/{self.rank}", str(len(parts)))

    def take(self, name: str, rank: int, patience: float) -> Any:
        """Return the message that a rank leaves under a name.

        Raises:
            TimeoutError: it is not there after so many seconds.
        """
        key, until = f"{self._turn}/{name}/{rank}", time.monotonic() + patience
        while not self._store.check([key]):
            if time.monotonic() >= until:
                raise TimeoutError(f"rank {rank} has not answered for {patience:g} seconds")
            time.sleep(_POLL)
        parts = range(int(self._store.get(key)))
        return pickle.loads(zlib.decompress(b"".join(self._store.get(f"{key}/{part}") for part in parts)))

    def part(self, speaker: int, patience: float, grace: float = 5.0) -> None:
        """Wait until a rank has said for all what is to be said, so that no process ends, and with it all, before.

        Args:
            speaker: the rank that has spoken when it calls this.
            patience: seconds to wait for it.
            grace: seconds that rank 0, which may hold the store, waits for others to have heard.
        """
        if self.rank == speaker:
            self.put("said", True)
        with suppress(TimeoutError):
            self.take("said", speaker, patience)
        self.put("heard", True)
        if self.rank == 0:
            for rank in range(self.ranks):
                with suppress(TimeoutError):
                    self.take("heard", rank, grace)


def open_board(environment: Mapping[str, str] | None = None) -> Board | None:
    """Return the board of the ranks of this launch, or None while none can be had.

    Launchers built on torchrun keep a store beside the processes. Without one, that of the process group is used,
    once there is a process group.
    """
    if dist.is_initialized():
        rank, ranks = dist.get_rank(), dist.get_world_size()
    else:
        space = os.environ if environment is None else environment
        rank, ranks = int(space.get("RANK", 0)), int(space.get("WORLD_SIZE", 1))
    if ranks == 1:
        return Board(HashStore(), 0, 1)
    store = _launchers_store(os.environ if environment is None else environment)
    if store is None and dist.is_initialized():
        store = dist.distributed_c10d._get_default_store()
    return None if store is None else Board(PrefixStore("flowsched/check", store), rank, ranks)


def _launchers_store(environment: Mapping[str, str]) -> TorchStore | None:
    if environment.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return None
    host, port = environment["MASTER_ADDR"], int(environment["MASTER_PORT"])
    store = TCPStore(host, port, is_master=False, timeout=timedelta(seconds=60))
    return PrefixStore(f"attempt{environment.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
