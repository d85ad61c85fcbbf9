"""The plans that a rank knows: each is lowered to its program once, and kept for as long as it is used."""

from __future__ import annotations

from collections.abc import Sequence

from flowsched.backend import Program
from flowsched.plan import Plan
from flowsched.programs import Placement, check_programs
from flowsched_torch.mesh import Mesh
from flowsched_torch.schedule import RankPlan, count_tags, plan_rank

_TAGS = 1 << 31


class Plans:
    """What a rank does, by the number by which all ranks call the plan.

    Args:
        placement: which rank serves which replica.
        rank: this rank.
        mesh: its connections.
        inputs_everywhere: whether every rank holds the step's inputs.
    """

    def __init__(self, placement: Placement, rank: int, mesh: Mesh, *, inputs_everywhere: bool) -> None:
        self._placement, self._rank, self._mesh = placement, rank, mesh
        self._inputs_everywhere = inputs_everywhere
        self._known: dict[int, RankPlan] = {}
        self._next_tag = 0

    def add(self, number: int, plan: Plan | Program, window: Sequence[int], *, checked: bool) -> RankPlan:
        """Lower a plan for this rank. All ranks add the same plans in the same order.

        Args:
            number: what the plan is called.
            plan: the plan, or the same made ready to run.
            window: the most calls of each node that may have started while the first of them is still needed.
            checked: whether the programs have been checked by another rank.

        Raises:
            CheckError: the programs of the ranks do not fit together.
        """
        program = plan if isinstance(plan, Program) else Program(plan)
        programs = program.plan.programs(placement=self._placement)
        if not checked:
            check_programs(programs, program.plan)
        tags = count_tags(programs, program, window)
        if self._next_tag + tags > _TAGS:
            self._next_tag = 0
        own = plan_rank(
            programs,
            program,
            self._rank,
            self._mesh,
            tag=self._next_tag,
            window=window,
            inputs_everywhere=self._inputs_everywhere,
        )
        self._next_tag += tags
        self._known[number] = own
        return own

    def __getitem__(self, number: int) -> RankPlan:
        return self._known[number]

    def forget(self, number: int) -> None:
        """Let go of a plan and its buffers."""
        del self._known[number]
