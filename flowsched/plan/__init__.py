"""The plan: a graph, a number of samples, and the static routing table that serves them."""

from flowsched.plan.files import load_plan, save_plan
from flowsched.plan.notation import Call, Feed, Fragment, parse_call, parse_calls
from flowsched.plan.plan import NodePlan, Plan
from flowsched.plan.table import Table

__all__ = [
    "Call",
    "Feed",
    "Fragment",
    "NodePlan",
    "Plan",
    "Table",
    "load_plan",
    "parse_call",
    "parse_calls",
    "save_plan",
]
