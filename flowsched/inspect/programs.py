"""What ``print(programs)`` shows: which replicas are on which rank, and what each rank does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flowsched.inspect.align import align
from flowsched.inspect.arithmetic import count
from flowsched.inspect.listing import WIDTH, pick
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
    lines = _fit(align(rows))
    return "\n".join([_say_placement(placement), *_with_gap(lines, shown.left_out, len(shown.first))])


def render_programs(programs: Programs) -> str:
    """Return the placement, the number of receives, runs and sends of each rank, and small programs in full."""
    placement, plan = programs.placement, programs.plan
    mode = "rendezvous" if programs.rendezvous else "sends do not wait"
    heading = (
        f"programs of {plan.graph.name} for {count(plan.samples, 'sample')}: "
        f"{count(plan.table.calls, 'call')} and {count(len(programs.messages), 'message')} on "
        f"{_say_placement(placement)}; {mode} (plan {plan.hash[:12]})"
    )
    shown = pick(len(programs), _MOST_RANKS)
    rows = [_HEADER, *(_cells(programs, rank) for rank in shown.places)]
    blocks = [[heading], _with_gap(_fit(align(rows, _NUMBERS)), shown.left_out, len(shown.first))]
    if len(programs.kinds) <= _MOST_ACTIONS:
        for program in programs:
            if len(program):
                lines = [f"    {action}" for action in program]
                blocks.append([f"  {_name(placement, program.rank)}", *lines])
    else:
        blocks.append(["  More: print(programs[0]) for all actions of rank 0"])
    return "\n\n".join("\n".join(block) for block in blocks)


def _say_placement(placement: Placement) -> str:
    home = "home apart" if placement.home_is_apart else f"home on rank {placement.home}"
    idle = placement.idle
    return f"{count(placement.ranks, 'rank')}, {f'{len(idle):,}' if idle else 'none'} idle, {home}"


def _cells(programs: Programs, rank: int) -> tuple[str, ...]:
    counts = np.bincount(programs[rank].kinds, minlength=len(ActionKind))
    placement = programs.placement
    return (_name(placement, rank), *(f"{each:,}" for each in counts), _say_replicas(placement, rank))


def _name(placement: Placement, rank: int) -> str:
    return "home" if placement.home_is_apart and rank == placement.home else str(rank)


def _say_replicas(placement: Placement, rank: int) -> str:
    served = placement.served_by(rank)
    if not served:
        return "- (holds inputs and outputs)" if rank == placement.home else "- (idle)"
    text = ", ".join(f"{node}.{replica}" for node, replicas in served.items() for replica in replicas)
    return f"{text} (holds inputs and outputs)" if rank == placement.home else text


def _fit(lines: Sequence[str]) -> list[str]:
    return [line if len(line) <= WIDTH else f"{line[: WIDTH - 4]} ..." for line in lines]


def _with_gap(lines: Sequence[str], left_out: int, first: int) -> list[str]:
    """Return a header and rows with a line where rows are left out after the first ones."""
    if not left_out:
        return list(lines)
    return [*lines[: first + 1], f"  ... {left_out:,} more", *lines[first + 1 :]]
