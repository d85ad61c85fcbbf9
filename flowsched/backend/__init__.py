"""What a backend is and how backends are found: all that the author of another backend needs.

A backend is a class registered under the entry-point group ``flowsched.backends``. It builds the replicas of a
:class:`Deployment` and returns a :class:`Running` that executes steps.
"""

from flowsched.backend.discovery import BackendEntry, find_backends, load_backend, make_backend
from flowsched.backend.features import Feature
from flowsched.backend.interface import Backend, Deployment, Running
from flowsched.programs import (
    ActionKind,
    Message,
    Messages,
    Placement,
    PlacementError,
    Programs,
    RankProgram,
    check_programs,
    place_calls,
)
from flowsched.runtime.binding import Binding
from flowsched.runtime.carrying import RemoteError, RemoteTraceback, pack_error, unpack_error
from flowsched.runtime.context import Context, ReplicaContext
from flowsched.runtime.countdown import Countdown
from flowsched.runtime.gates import Gates
from flowsched.runtime.outputs import Outputs
from flowsched.runtime.program import Links, Program, Read
from flowsched.runtime.shipping import pack_object, unpack_object
from flowsched.runtime.step import Seen, Step

__all__ = [
    "ActionKind",
    "Backend",
    "BackendEntry",
    "Binding",
    "Context",
    "Countdown",
    "Deployment",
    "Feature",
    "Gates",
    "Links",
    "Message",
    "Messages",
    "Outputs",
    "Placement",
    "PlacementError",
    "Program",
    "Programs",
    "RankProgram",
    "Read",
    "RemoteError",
    "RemoteTraceback",
    "ReplicaContext",
    "Running",
    "Seen",
    "Step",
    "check_programs",
    "find_backends",
    "load_backend",
    "make_backend",
    "pack_error",
    "pack_object",
    "place_calls",
    "unpack_error",
    "unpack_object",
]
