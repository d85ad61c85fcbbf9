"""Several processes of this command, started here as torchrun would start them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence

from flowsched.cli import exit_codes
from flowsched.errors import FlowschedError

_POLL = 0.05


class RankEndedError(FlowschedError):
    """A rank that has ended before it could say why.

    Args:
        rank: its number.
        code: its exit code; below 0 it is the signal that ended it.
    """

    code = "rank-ended"

    def __init__(self, rank: int, code: int) -> None:
        how = f"signal {-code}" if code < 0 else f"code {code}"
        killed = "; the system sends it where memory runs out" if code == -9 else ""
        super().__init__(
            f"rank {rank} ended with {how} while its loader was made or read{killed}. "
            "Look for what ends the process there"
        )


def run_ranks(ranks: int, arguments: Sequence[str]) -> int:
    """Run a command of flowsched's in so many processes that find each other; return the first code that is not 0.

    Processes that are left when one has failed get a few seconds, and are ended then.

    Raises:
        RankEndedError: a rank has ended without a word.
    """
    from torch._C._distributed_c10d import TCPStore  # torch.distributed has it, untyped

    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    everywhere = {
        "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(store.port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
    }
    command = [sys.executable, "-m", "flowsched", *arguments]
    started: list[subprocess.Popen[bytes]] = []
    try:
        for rank in range(ranks):
            own = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            started.append(subprocess.Popen(command, env={**os.environ, **everywhere, **own}))
        return _wait(started)
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
            process.wait()


def _wait(started: Sequence[subprocess.Popen[bytes]], grace: float = 5.0) -> int:
    """Wait until all have ended, or a while after the first has failed; return the first code that is not 0.

    Raises:
        RankEndedError: a rank has ended by a signal, or with a code of its own, or others wait for one that has.
    """
    until, first = None, None
    while waits := any(process.poll() is None for process in started):
        ended = {rank: one.returncode for rank, one in enumerate(started) if one.poll() not in (None, 0)}
        if ended and until is None:
            until, first = time.monotonic() + grace, next(iter(ended))
        if until is not None and time.monotonic() > until:
            break
        time.sleep(_POLL)
    codes = {rank: one.returncode for rank, one in enumerate(started) if one.returncode}
    if not codes:
        return 0
    first = next(iter(codes)) if first is None else first
    strange = [rank for rank, code in codes.items() if code not in exit_codes.MEANINGS]
    if waits or strange:
        rank = first if first in strange or not strange else strange[0]
        raise RankEndedError(rank, codes[rank])
    return codes[first]
