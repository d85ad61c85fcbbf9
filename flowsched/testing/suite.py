"""The whole suite."""

from __future__ import annotations

from flowsched.testing.columns import ColumnTests
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
from flowsched.testing.widths import WidthTests


class BackendSuite(
    ColumnTests,
    WidthTests,
    ResultTests,
    SharedReplicaTests,
    RowTests,
    PromiseTests,
    ContextTests,
    SessionTests,
    EventTests,
    ObserverTests,
    MemoryTests,
    SharingTests,
    FailureTests,
    OddOutputTests,
    OddErrorTests,
    LossTests,
    InterruptTests,
    FeatureTests,
):
    """All that a backend must do; see :class:`flowsched.testing.Suite` for what can be adapted."""
