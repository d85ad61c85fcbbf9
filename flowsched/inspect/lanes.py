"""Which replica reads which samples: one lane a node, drawn to scale, each call under its samples."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil, lcm

from flowsched.plan import NodePlan, Plan

_NARROWEST_CALL = 4
_TICKS = (1, 2, 4, 5, 10, 20, 25, 50)


def draw_lanes(plan: Plan, width: int) -> list[str]:
    """Return a ruler of sample ids and one lane a node; nothing where that takes more than ``width``.

    A call is drawn from the first to the last of the samples whose rows it reads and is labelled with its
    replica and its place in that replica's queue. Rows made of several samples at once share their room.
    """
    if not plan.samples or any(len(calls) * _NARROWEST_CALL > width for calls in plan):
        return []
    per_sample = _columns_per_sample(plan)
    heads = ["sample", *(calls.name for calls in plan)]
    head_width = max(map(len, heads))
    if head_width + 2 + plan.samples * per_sample > width:
        return []
    lanes = [_ruler(plan.samples, per_sample), *(_lane(calls, per_sample) for calls in plan)]
    return [f"{head.ljust(head_width)} {lane}" for head, lane in zip(heads, lanes, strict=True)]


def _columns_per_sample(plan: Plan) -> int:
    """Return the fewest columns with which every call has room for its label and starts on a whole one."""
    step = lcm(*(plan.rows[calls.name].read.numerator for calls in plan))
    needed = max(
        (len(label) + 1) / (stop - start) for calls in plan for label, start, stop in _labelled_spans(calls)
    )
    return ceil(needed / step) * step


def _labelled_spans(calls: NodePlan) -> Iterator[tuple[str, Fraction, Fraction]]:
    """Yield the label of each call and the samples, as fractions, between which its rows lie."""
    plan, read = calls.plan, calls.plan.rows[calls.name].read
    for number in calls.numbers:
        label = f"{plan.table.replica[number]}.{plan.table.position[number]}"
        yield label, int(plan.table.start[number]) / read, int(plan.table.stop[number]) / read


def _lane(calls: NodePlan, per_sample: int) -> str:
    cells = [
        f"|{label}".ljust(int((stop - start) * per_sample)) for label, start, stop in _labelled_spans(calls)
    ]
    return "".join(cells) + "|"


def _ruler(samples: int, per_sample: int) -> str:
    widest = len(str(samples - 1)) + 1
    tick = next((tick for tick in _TICKS if tick * per_sample >= widest), samples)
    return " " + "".join(str(sample).ljust(tick * per_sample) for sample in range(0, samples, tick)).rstrip()
