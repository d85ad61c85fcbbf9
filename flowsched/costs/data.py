"""The overhead of one backend on one machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class BackendCosts:
    """Seconds that routing itself takes on a backend, beside what the workers take.

    Attributes:
        backend: name of the backend.
        options: the options that it was measured with.
        step: seconds of a step that has almost nothing to do.
        call: seconds that one call more in a replica's queue adds.
        fragment: seconds that one fragment more to read adds.
        megabyte: seconds that 1,000,000 bytes more in a fragment add.
        machine: name and number of cores of the machine.
        versions: versions of Python and of the packages that the backend stands on.
        measured: date of the measurement, as ``YYYY-MM-DD``.
    """

    backend: str
    step: float
    call: float
    fragment: float
    megabyte: float
    options: Mapping[str, Any] = field(default_factory=dict)
    machine: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    measured: str = ""

    def predict(self, calls: int, fragments: int, megabytes: float) -> float:
        """Return seconds of overhead of so much work one after the other.

        >>> BackendCosts("ray", step=1e-3, call=5e-4, fragment=2e-4, megabyte=1e-3).predict(4, 10, 2.0)
        0.007
        """
        return self.step + calls * self.call + fragments * self.fragment + megabytes * self.megabyte
