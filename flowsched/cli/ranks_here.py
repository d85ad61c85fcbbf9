"""Several processes of this command, started here as torchrun would start them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence

_POLL = 0.05


def run_ranks(ranks: int, arguments: Sequence[str]) -> int:
    """Run a command of flowsched's in so many processes that find each other; return the first code that is not 0.

    Processes that are left when one has failed get a few seconds, and are ended then.
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
    """Wait until all have ended, or a while after the first has failed."""
    until = None
    while any(process.poll() is None for process in started):
        failed = [process.returncode for process in started if process.poll() not in (None, 0)]
        if failed and until is None:
            until = time.monotonic() + grace
        if until is not None and time.monotonic() > until:
            return failed[0] if failed[0] > 0 else 1
        time.sleep(_POLL)
    codes = [process.returncode for process in started if process.returncode]
    return next((code for code in codes if code > 0), 1) if codes else 0
