"""All checks of a plan, in the order in which one builds on the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flowsched.check.block import Block, cut_blocks
from flowsched.check.columns import find_column_problems
from flowsched.check.deadlock import find_sequence_problems
from flowsched.check.dealing import deal_out, find_replica_problems
from flowsched.check.determinism import find_choice_problems
from flowsched.check.feeds import Inflow, cut_inflows, find_feed_problems, find_offset_problems
from flowsched.check.loads import find_load_problems
from flowsched.check.makers import Makers, list_makers
from flowsched.check.order import find_order_problems
from flowsched.check.queues import Queues, find_queue_problems, line_up
from flowsched.check.sizes import find_size_problems, find_sizes
from flowsched.check.spans import find_span_problems
from flowsched.check.waves import find_wave_problems
from flowsched.errors import CheckError, Problem
from flowsched.plan import Plan


def check_plan(plan: Plan) -> None:
    """Verify that a plan keeps its promises, from its graph and its table alone.

    Takes time near-linear in nodes, calls and fragments.

    Raises:
        CheckError: with one problem for each promise that a node's calls break.

    >>> import flowsched as fs
    >>> graph = fs.Graph("one", sources=["x"], nodes=[fs.Node("double", inputs=["x"], replicas=2)])
    >>> check_plan(fs.compile(graph, samples=5))
    """
    given: object = plan
    if not isinstance(given, Plan):
        message = f"a {type(given).__name__} is no plan"
        raise CheckError(
            "what was given", [Problem("table", "plan", message, "Give fs.compile(graph, samples)")]
        )
    problems = find_violations(plan)
    if problems:
        raise CheckError(f"plan of graph {plan.graph.name!r} for {plan.samples} samples", problems)


def find_violations(plan: Plan) -> list[Problem]:
    """Return what :func:`check_plan` would raise; empty where the plan keeps every promise.

    A table so damaged that its calls cannot be told apart is reported as such, and not looked at further.
    """
    problems = [*find_size_problems(plan), *find_column_problems(plan)]
    if problems:
        return problems
    stored = cut_blocks(plan, find_sizes(plan.graph, plan.samples))
    for block in stored:
        problems += find_span_problems(block)
    blocks = [block.within_rows() for block in stored]
    for block in blocks:
        problems += _find_dealing_problems(block)
    queues = line_up(blocks)
    problems += find_queue_problems(queues, blocks)
    inflows = cut_inflows(plan.table, blocks)
    makers = list_makers(plan, blocks)
    problems += _find_flow_problems(plan, blocks, queues, inflows, makers)
    return problems or list(find_order_problems(blocks, inflows, makers))


def _find_dealing_problems(block: Block) -> Iterator[Problem]:
    """Yield what is wrong with how the rows of one node are dealt to its replicas."""
    unknown = list(find_replica_problems(block))
    if unknown:
        yield from unknown
        return
    dealt = deal_out(block)
    yield from find_load_problems(block, dealt)
    misdealt = list(find_wave_problems(block, dealt))
    yield from misdealt or find_choice_problems(block, dealt)


def _find_flow_problems(
    plan: Plan,
    blocks: Sequence[Block],
    queues: Sequence[Queues],
    inflows: Sequence[Inflow | None],
    makers: Makers,
) -> Iterator[Problem]:
    """Yield what is wrong between calls: what they read, and when."""
    yield from find_offset_problems(plan.table, blocks)
    for block, inflow in zip(blocks, inflows, strict=True):
        if inflow is not None:
            yield from find_feed_problems(block, inflow, makers)
    yield from find_sequence_problems(blocks, queues, inflows, makers)
