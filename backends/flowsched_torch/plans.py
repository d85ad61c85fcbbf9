"""The plans that a rank knows: each is lowered to its program once, and kept for as long as it is used."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence

from flowsched.backend import Program
from flowsched.plan import Plan
from flowsched.programs import Placement, check_programs
from flowsched_torch.direct import Direct
from flowsched_torch.mesh import Mesh
from flowsched_torch.schedule import RankPlan, count_tags, plan_rank

_TAGS = 1 << 31
_KEPT = 16  # plans; one that comes back later is lowered anew


class PlanNumbers:
    """By which number all ranks call a plan: ranks that are told of the same plans in the same order agree."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, int] = OrderedDict()
        self._next = 0

    def find(self, key: Hashable) -> tuple[int, bool, int | None]:
        """Return the number of what has this key, whether that is new, and the number that is forgotten for it."""
        number, forgotten = self._known.pop(key, None), None
        is_new = number is None
        if number is None:
            number, self._next = self._next, self._next + 1
        self._known[key] = number
        if len(self._known) > _KEPT:
            _, forgotten = self._known.popitem(last=False)
        return number, is_new, forgotten


class Plans:
    """What a rank does, by the number by which all ranks call the plan.

    Args:
        placement: which rank serves which replica.
        rank: this rank.
        mesh: its connections.
        inputs_everywhere: whether every rank holds the step's inputs.
        outputs_everywhere: whether every rank is to have its outputs.
        direct: what tensors on accelerators go by; None where they go by the host.
    """

    def __init__(
        self,
        placement: Placement,
        rank: int,
        mesh: Mesh,
        *,
        inputs_everywhere: bool = False,
        outputs_everywhere: bool = False,
        direct: Direct | None = None,
    ) -> None:
        self._direct = direct
        self._placement, self._rank, self._mesh = placement, rank, mesh
        self._inputs_everywhere, self._outputs_everywhere = inputs_everywhere, outputs_everywhere
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
        rendezvous = self._direct is not None
        programs = program.plan.programs(placement=self._placement, rendezvous=rendezvous)
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
            outputs_everywhere=self._outputs_everywhere,
            direct=self._direct,
        )
        self._next_tag += tags
        self._known[number] = own
        return own

    def __getitem__(self, number: int) -> RankPlan:
        return self._known[number]

    def forget(self, number: int) -> None:
        """Let go of a plan and its buffers."""
        del self._known[number]

    def close(self) -> None:
        """Let go of all plans, whose streams hold the mesh, and leave that."""
        self._known.clear()
        self._mesh.close()
        if self._direct is not None:
            self._direct.close()
