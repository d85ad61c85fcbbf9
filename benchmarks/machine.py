"""The machine that measures, in words that say nothing about whose it is."""

from __future__ import annotations

import datetime
import os
import platform
import resource
import sys
from pathlib import Path

import numpy as np

_MEBI = 1024**2


def describe_machine() -> str:
    """Return date, cores, memory and versions in one line."""
    parts = [
        datetime.date.today().isoformat(),
        f"{os.cpu_count()} cores{_processor()}",
        f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1024**3:.0f} GiB",
        platform.system(),
        f"Python {platform.python_version()}",
        f"numpy {np.__version__}",
        f"load {os.getloadavg()[0]:.1f} when it began",
    ]
    return ", ".join(parts)


def peak_memory() -> float:
    """Return the most memory that this process has had resident, in MiB.

    Linux hands the peak of the parent down in ``getrusage``; the one in ``/proc`` is the process's own.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / _MEBI if sys.platform == "darwin" else peak / 1024


def _processor() -> str:
    listing = Path("/proc/cpuinfo")
    lines = listing.read_text().splitlines() if listing.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f" ({names[0]})" if names else ""
