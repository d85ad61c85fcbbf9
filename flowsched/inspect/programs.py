"""What ``print(programs)`` shows: which replicas are on which rank, and what each rank does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flowsched.inspect.align import align
from flowsched.inspect.arithmetic import count
from flowsched.inspect.listing import WIDTH, Pick, pick
from flowsched.programs.placement import Placement
from flowsched.programs.programs import ActionKind, Programs

_MOST_RANKS = 32
_MOST_ACTIONS = 160
_HEADER = ("rank", "receives", "runs", "sends", "replicas")
_NUMBERS = (False, True, True, True)


def render_placement(placement: Placement) -> str:
    """Return a heading and one line a rank, with the replicas that it serves; the middle of many is left out."""
    shown = pick(placement.processes, _MOST_RANKS)
    rows = [("rank", "replicas")]
    rows += [(_name(placement, rank), _say_replicas(placement, rank)) for rank in shown.places]
    return "\n".join([_say_placement(placement), *_with_gap(_fit(align(rows)), shown)])


def render_programs(programs: Programs, more: str = "print(programs[0])") -> str:
    """Return the placement, the number of receives, runs and sends of each rank, and small programs in full.

    Args:
        programs: one for each rank.
        more: how to see the program of a rank where there are too many actions to show.
    """
    placement = programs.placement
    shown = pick(len(programs), _MOST_RANKS)
    rows = [_HEADER, *(_cells(programs, rank) for rank in shown.places)]
    blocks = [_heading(programs), _with_gap(_fit(align(rows, _NUMBERS)), shown)]
    if len(programs.kinds) <= _MOST_ACTIONS:
        for program in programs:
            if len(program):
                lines = [f"    {action}" for action in program]
                blocks.append([f"  {placement.say_rank(program.rank)}:", *lines])
    else:
        blocks.append([f"  More: {more}"])
    return "\n\n".join("\n".join(block) for block in blocks)


def _heading(programs: Programs) -> list[str]:
    plan = programs.plan
    sizes = f"{count(plan.table.calls, 'call')}, {count(len(programs.messages), 'message')}"
    order = (
        "wait for their receivers (rendezvous)" if programs.rendezvous else "do not wait for their receivers"
    )
    return [
        f"{plan.graph.name}: programs of {_say_placement(programs.placement)} (plan {plan.hash[:12]})",
        f"  {count(plan.samples, 'sample')}, {sizes}; in an order for sends that {order}",
    ]


def _say_placement(placement: Placement) -> str:
    home = "home apart" if placement.home_is_apart else f"home on rank {placement.home}"
    idle = len(placement.idle)
    return f"{count(placement.ranks, 'rank')}, {f'{idle:,}' if idle else 'none'} idle, {home}"


def _cells(programs: Programs, rank: int) -> tuple[str, ...]:
    counts = np.bincount(programs[rank].kinds, minlength=len(ActionKind))
    placement = programs.placement
    return (_name(placement, rank), *(f"{each:,}" for each in counts), _say_replicas(placement, rank))


def _name(placement: Placement, rank: int) -> str:
    if rank != placement.home:
        return str(rank)
    return "home" if placement.home_is_apart else f"{rank} (home)"


def _say_replicas(placement: Placement, rank: int) -> str:
    served = placement.served_by(rank)
    if not served:
        return "-" if rank == placement.home else "- (idle)"
    return ", ".join(f"{node}.{replica}" for node, replicas in served.items() for replica in replicas)


def _fit(lines: Sequence[str]) -> list[str]:
    return [line if len(line) <= WIDTH else f"{line[: WIDTH - 4]} ..." for line in lines]


def _with_gap(lines: Sequence[str], shown: Pick) -> list[str]:
    """Return a header and rows with a line where rows are left out after the first ones."""
    if not shown.left_out:
        return list(lines)
    first = 1 + len(shown.first)
    return [*lines[:first], f"  ... {shown.left_out:,} more", *lines[first:]]
