"""How many more threads this machine lets this process start."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from flowsched.errors import CapacityError

_MAPS_A_THREAD = 2  # its stack and the guard page below it


def refuse_too_many(threads: int) -> None:
    """Refuse to start more threads than the machine can hold.

    Raises:
        CapacityError: ``threads`` is above the tightest limit; names both and the limit.
    """
    for limit, left in sorted(threads_left().items(), key=lambda item: item[1]):
        if threads > left:
            raise CapacityError(
                f"the plan asks for {threads} replicas, each a thread, and this process can start {left} more "
                f"({limit}). Declare fewer replicas, raise that limit, "
                "or choose a backend that spreads them over machines"
            )


def threads_left() -> dict[str, int]:
    """Return how many threads can still be started under each limit that is known here."""
    found: dict[str, int] = {}
    running = _count_threads()
    if sys.platform != "win32":
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
        if soft != resource.RLIM_INFINITY:
            found["ulimit -u"] = soft - running
    for path, used in (
        ("/proc/sys/kernel/threads-max", running),
        ("/proc/sys/kernel/pid_max", running),
    ):
        limit = _read_number(Path(path))
        if limit is not None:
            found[path] = limit - used
    maps = _read_number(Path("/proc/sys/vm/max_map_count"))
    if maps is not None:
        found["/proc/sys/vm/max_map_count"] = (maps - _count_lines(Path("/proc/self/maps"))) // _MAPS_A_THREAD
    for folder in _control_groups():
        limit, used_there = _read_number(folder / "pids.max"), _read_number(folder / "pids.current")
        if limit is not None and used_there is not None:
            found[str(folder / "pids.max")] = limit - used_there
    return {limit: max(left, 0) for limit, left in found.items()}


def _count_threads() -> int:
    """Return the threads of this process; those of the same user's other processes are not known."""
    try:
        return len(list(Path("/proc/self/task").iterdir()))
    except OSError:
        return threading.active_count()


def _control_groups() -> list[Path]:
    """Return the control groups of this process, from its own to the root."""
    root = Path("/sys/fs/cgroup")
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    own = [line.split(":", 2) for line in lines]
    places = [
        (root if not kind else root / kind) / path.lstrip("/")
        for _, kind, path in own
        if kind in ("", "pids")
    ]
    return [folder for place in places for folder in (place, *place.parents) if folder.is_relative_to(root)]


def _read_number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _count_lines(path: Path) -> int:
    try:
        return path.read_text().count("\n")
    except OSError:
        return 0
