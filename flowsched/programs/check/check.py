"""All checks of programs, in the order in which one builds on the other."""

from __future__ import annotations

from flowsched.errors import CheckError, Problem
from flowsched.plan import Plan
from flowsched.programs.check.columns import find_column_problems
from flowsched.programs.check.cycles import find_cycle
from flowsched.programs.check.moves import find_move_problems, find_order_problems
from flowsched.programs.check.reads import find_read_problems
from flowsched.programs.check.runs import find_run_problems
from flowsched.programs.check.standing import Standing
from flowsched.programs.errors import PlacementError
from flowsched.programs.programs import Programs


def check_programs(programs: Programs, plan: Plan, *, rendezvous: bool | None = None) -> None:
    """Verify that programs run a plan to its end: each call once, each message matched, none waited for in vain.

    Takes time near-linear in calls, fragments and messages.

    Args:
        programs: one for each rank.
        plan: the plan that they must run.
        rendezvous: whether each send may wait for its receiver; None for what the programs say of themselves.

    Raises:
        CheckError: with one problem for each way in which they fail.

    >>> import flowsched as fs
    >>> graph = fs.Graph("one", sources=["x"], nodes=[fs.Node("double", inputs=["x"], replicas=2)])
    >>> plan = fs.compile(graph, samples=5)
    >>> check_programs(plan.programs(ranks=2, home=0), plan)
    """
    problems = find_violations(programs, plan, rendezvous=rendezvous)
    if problems:
        ranks = f"{programs.placement.ranks} rank{'s' if programs.placement.ranks > 1 else ''}"
        subject = f"programs of graph {plan.graph.name!r} for {plan.samples} samples on {ranks}"
        raise CheckError(subject, problems)


def find_violations(programs: Programs, plan: Plan, *, rendezvous: bool | None = None) -> list[Problem]:
    """Return what :func:`check_programs` would raise; empty where the programs run the plan to its end.

    Where calls or messages cannot be found in the programs, what builds on their places is not looked at.
    """
    try:
        programs.placement.check(plan.graph)
    except PlacementError as error:
        return list(error.problems)
    problems = list(find_column_problems(programs, plan))
    if problems:
        return problems
    standing = Standing(programs, plan)
    problems = [*find_run_problems(standing), *find_move_problems(standing)]
    if problems:
        return problems
    problems = [*find_order_problems(standing), *find_read_problems(standing)]
    return problems or find_cycle(standing, programs.rendezvous if rendezvous is None else rendezvous)
