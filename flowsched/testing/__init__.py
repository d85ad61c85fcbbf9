"""The conformance suite: what every backend must do, run against yours with one line.

In a test file of yours, which pytest collects::

    from flowsched.testing import BackendSuite

    class TestMine(BackendSuite):
        backend = "mine"  # its name, or an instance of it

That is all. What the backend declares in ``Backend.lacks`` is skipped, with the feature in the reason, and nothing
else is. Attributes of :class:`Suite` adapt the suite to the cost of a replica: which cuts are tried, how wide a
node is, how long a failure may take to surface. Each part can be run alone: ``class TestMyRows(RowTests)``.

It needs pytest and hypothesis (``pip install "flowsched[testing]"``); columns of torch are skipped where torch is
missing. Nothing is loaded until a name is asked for, so that processes which only run the suite's workers stay
light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flowsched.testing.base import Suite
    from flowsched.testing.columns import ColumnTests
    from flowsched.testing.comparing import assert_same
    from flowsched.testing.context import ContextTests
    from flowsched.testing.events import EventTests
    from flowsched.testing.failures import FailureTests
    from flowsched.testing.features import FeatureTests
    from flowsched.testing.interrupts import InterruptTests
    from flowsched.testing.losses import LossTests
    from flowsched.testing.memory import MemoryTests
    from flowsched.testing.observers import ObserverTests
    from flowsched.testing.odd_errors import OddErrorTests
    from flowsched.testing.odd_outputs import OddOutputTests
    from flowsched.testing.promises import PromiseTests
    from flowsched.testing.results import ResultTests
    from flowsched.testing.rows import RowTests
    from flowsched.testing.sessions import SessionTests
    from flowsched.testing.shared_replicas import SharedReplicaTests
    from flowsched.testing.sharing import SharingTests
    from flowsched.testing.suite import BackendSuite
    from flowsched.testing.widths import WidthTests

__all__ = [
    "BackendSuite",
    "ColumnTests",
    "ContextTests",
    "EventTests",
    "FailureTests",
    "FeatureTests",
    "InterruptTests",
    "LossTests",
    "MemoryTests",
    "ObserverTests",
    "OddErrorTests",
    "OddOutputTests",
    "PromiseTests",
    "ResultTests",
    "RowTests",
    "SessionTests",
    "SharedReplicaTests",
    "SharingTests",
    "Suite",
    "WidthTests",
    "assert_same",
]

_MODULES = {
    "BackendSuite": "suite",
    "ColumnTests": "columns",
    "ContextTests": "context",
    "EventTests": "events",
    "FailureTests": "failures",
    "FeatureTests": "features",
    "InterruptTests": "interrupts",
    "LossTests": "losses",
    "MemoryTests": "memory",
    "ObserverTests": "observers",
    "OddErrorTests": "odd_errors",
    "OddOutputTests": "odd_outputs",
    "PromiseTests": "promises",
    "ResultTests": "results",
    "RowTests": "rows",
    "SessionTests": "sessions",
    "SharedReplicaTests": "shared_replicas",
    "SharingTests": "sharing",
    "Suite": "base",
    "WidthTests": "widths",
    "assert_same": "comparing",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import pytest

    # So that failures say what was compared; pytest must know of a module before it is imported.
    pytest.register_assert_rewrite(*(f"{__name__}.{module}" for module in _MODULES.values()))
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
