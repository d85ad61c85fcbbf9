"""One program per rank (RECV, RUN, SEND), lowered from a plan: computed once, printable, checked before it runs."""

from flowsched.programs.actions import Action, Recv, Run, Send, parse_action
from flowsched.programs.check import check_programs
from flowsched.programs.errors import PlacementError
from flowsched.programs.lower import lower_plan
from flowsched.programs.messages import Message, Messages
from flowsched.programs.placement import Placement
from flowsched.programs.programs import ActionKind, Programs, RankProgram
from flowsched.programs.simulate import Costs, Simulation, simulate
from flowsched.programs.traffic import place_calls

__all__ = [
    "Action",
    "ActionKind",
    "Costs",
    "Message",
    "Messages",
    "Placement",
    "PlacementError",
    "Programs",
    "RankProgram",
    "Recv",
    "Run",
    "Send",
    "Simulation",
    "check_programs",
    "lower_plan",
    "parse_action",
    "place_calls",
    "simulate",
]
