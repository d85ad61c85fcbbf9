"""Programs of a plan on the command line: lowered, checked, and printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from flowsched.plan import Plan
    from flowsched.programs import Programs

Ranks = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Print, in place of the plan, what each of this many ranks receives, runs and sends.",
        show_default=False,
    ),
]
Home = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="With --ranks: the rank that holds inputs and outputs; by default one more, which runs nothing.",
        show_default=False,
    ),
]
Rank = Annotated[
    int | None, typer.Option(min=0, help="With --ranks: print this rank's program only.", show_default=False)
]
Rendezvous = Annotated[
    bool, typer.Option("--rendezvous", help="With --ranks: an order for sends that wait for their receivers.")
]


@dataclass(frozen=True)
class ProgramOptions:
    """What is asked of a plan's programs.

    Attributes:
        ranks: how many ranks; None where no programs are asked for.
        home: the rank that holds inputs and outputs; None for one apart.
        rank: the only rank that is shown; None for all.
        rendezvous: whether sends wait for their receivers.
    """

    ranks: int | None
    home: int | None
    rank: int | None
    rendezvous: bool

    def lower(self, plan: Plan) -> Programs | None:
        """Return the checked programs of a plan, or None where they are not asked for.

        Raises:
            BadParameter: an option goes with ``--ranks``, which is not given, or there is no such rank.
            PlacementError: home is no rank.
        """
        from flowsched.programs import check_programs

        if self.ranks is None:
            for name, value in (
                ("--home", self.home),
                ("--rank", self.rank),
                ("--rendezvous", self.rendezvous),
            ):
                if value is not None and value is not False:  # 0 is a rank
                    raise typer.BadParameter("it goes with --ranks, e.g. --ranks 4", param_hint=name)
            return None
        programs = plan.programs(self.ranks, home=self.home, rendezvous=self.rendezvous)
        if self.rank is not None and self.rank >= len(programs):
            message = f"there are programs 0 to {len(programs) - 1}"
            raise typer.BadParameter(message, param_hint="--rank")
        check_programs(programs, plan)
        return programs

    def render(self, programs: Programs) -> str:
        """Return the programs, or that of the one rank that is asked for, as text."""
        from flowsched.inspect.programs import render_programs

        if self.rank is None:
            return render_programs(programs, more=f"plan --ranks {self.ranks} --rank 0")
        return str(programs[self.rank])

    def to_dict(self, programs: Programs) -> dict[str, Any]:
        """Return the programs as plain data: the placement, and the actions of each rank in one line each."""
        placement = programs.placement
        shown = range(len(programs)) if self.rank is None else [self.rank]
        return {
            "ranks": placement.ranks,
            "home": placement.home,
            "rendezvous": programs.rendezvous,
            "replicas": {name: list(ranks) for name, ranks in placement.replicas.items()},
            "messages": len(programs.messages),
            "actions": {str(rank): [str(action) for action in programs[rank]] for rank in shown},
        }
