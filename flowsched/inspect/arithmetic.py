"""Why a node is split as it is: its arithmetic in one line, and how its numbers are written."""

from __future__ import annotations

from collections.abc import Sequence

from flowsched.inspect.summary import Counts, NodeSummary

_MOST_TERMS = 3


def say_split(summary: NodeSummary) -> str:
    """Return the arithmetic behind a node's split in one line.

    >>> import flowsched as fs
    >>> from flowsched.inspect.summary import summarise
    >>> node = fs.Node("reward", inputs=["prompts"], replicas=3, batch_size=64)
    >>> (reward,) = summarise(fs.compile(fs.Graph("g", ["prompts"], [node]), samples=1000))
    >>> say_split(reward)
    '1,000 rows over 3 replicas: 1 gets 334, 2 get 333; batch size 64: 6 calls each, of 56 or 55; 0 idle'
    """
    parts = [_say_loads(summary)]
    if summary.calls:
        parts.append(f"{_say_cap(summary)}: {_say_calls(summary)}")
    parts.append(f"{summary.idle:,} idle")
    return "; ".join(parts)


def count(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count(1, "call"), count(2000, "call")
    ('1 call', '2,000 calls')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def say_spread(counts: Counts) -> str:
    """Return sizes and how many have each; a range where there are many sizes.

    >>> say_spread(((6, 1), (5, 2))), say_spread(((2, 8),)), say_spread(())
    ('6 + 5x2', '2', '-')
    """
    if not counts:
        return "-"
    if len(counts) > _MOST_TERMS:
        return say_extent(counts[-1][0], counts[0][0])
    if len(counts) == 1:
        return f"{counts[0][0]:,}"
    return " + ".join(f"{size:,}" + (f"x{number:,}" if number > 1 else "") for size, number in counts)


def say_extent(fewest: int, most: int) -> str:
    """Return a closed range of numbers.

    >>> say_extent(1, 1), say_extent(1, 3)
    ('1', '1-3')
    """
    return f"{most:,}" if fewest == most else f"{fewest:,}-{most:,}"


def _say_loads(summary: NodeSummary) -> str:
    groups = (
        f" in {count(summary.rows // summary.unit, 'group')} of {summary.unit:,}" if summary.unit > 1 else ""
    )
    whose = "" if summary.owner == summary.node else f" of {summary.owner}"
    over = f"{count(summary.rows, 'row')}{groups} over {count(summary.replicas, 'replica')}{whose}"
    loads = summary.loads
    if not loads:
        return over
    if len(loads) > _MOST_TERMS:
        return f"{over}: {loads[-1][0]:,} to {loads[0][0]:,} each"
    if len(loads) == 1 and not summary.idle:
        return over if summary.replicas == 1 else f"{over}: {loads[0][0]:,} each"
    return f"{over}: " + ", ".join(f"{_verb(replicas, 'get')} {rows:,}" for rows, replicas in loads)


def _say_calls(summary: NodeSummary) -> str:
    sizes = [f"{rows:,}" for rows, _ in summary.call_sizes]
    each = "" if summary.used == 1 else " each"
    if summary.waves == 1 and len(sizes) > 1:
        return "1 call each"
    if len(summary.call_counts) == 1:
        calls = count(summary.call_counts[0][0], "call")
        return f"{calls} of {sizes[0]}{each}" if len(sizes) == 1 else f"{calls}{each}, of {_either(sizes)}"
    if len(summary.call_counts) > _MOST_TERMS:
        fewest, most = summary.call_counts[-1][0], summary.call_counts[0][0]
        return f"{fewest:,} to {most:,} calls each, of {_either(sizes)}"
    (most, makers), *others = summary.call_counts
    numbers = [f"{_verb(makers, 'make')} {count(most, 'call')}"]
    numbers += [f"{_verb(replicas, 'make')} {number:,}" for number, replicas in others]
    return f"{', '.join(numbers)}, of {_either(sizes)}"


def _say_cap(summary: NodeSummary) -> str:
    if summary.batch_size is None:
        return "no batch size"
    most = summary.batch_size // summary.unit * summary.unit
    if most == summary.batch_size:
        return f"batch size {summary.batch_size:,}"
    return f"batch size {summary.batch_size:,}, {most:,} in whole groups"


def _verb(replicas: int, verb: str) -> str:
    return f"{replicas:,} {verb}{'s' if replicas == 1 else ''}"


def _either(sizes: Sequence[str]) -> str:
    if len(sizes) > _MOST_TERMS:
        return f"{sizes[-1]} to {sizes[0]}"
    return " or ".join([", ".join(sizes[:-1]), sizes[-1]] if len(sizes) > 1 else sizes)
