"""Memory and processor time of this process and all that it started."""

from __future__ import annotations

import os
from pathlib import Path


def count_memory(part: str = "") -> tuple[float, int]:
    """Return MiB and the number of processes, of this one and all below it; shared pages are divided.

    Args:
        part: only processes whose command line holds this text.
    """
    sizes = [
        size for process in _family() if part in _command(process) and (size := _size(process)) is not None
    ]
    return sum(sizes), len(sizes)


def count_cpu() -> float:
    """Return the seconds of processor time that all threads of these processes have taken which still live."""
    return sum(_cpu(task) for process in _family() for task in Path(f"/proc/{process}/task").glob("*")) / 1e9


def free_memory() -> float:
    """Return the MiB that can still be used on this machine."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("the system does not tell how much memory is available")


def _family() -> set[int]:
    parents = {int(path.name): parent for path in Path("/proc").glob("[0-9]*") if (parent := _parent(path))}
    family = {os.getpid()}
    while True:
        more = {process for process, parent in parents.items() if parent in family} - family
        if not more:
            return family
        family |= more


def _parent(path: Path) -> int | None:
    try:
        return int((path / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:  # it has ended meanwhile
        return None


def _command(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def _cpu(task: Path) -> int:
    """Return the nanoseconds that a thread has run."""
    try:
        return int((task / "schedstat").read_text().split()[0])
    except OSError:
        return 0


def _size(process: int) -> float | None:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")), None)
