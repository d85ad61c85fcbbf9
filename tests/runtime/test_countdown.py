"""Calls start when what they wait for has ended, and outputs are let go after their last reader."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

import flowsched as fs
from flowsched.backend import Countdown, Program
from tests.strategies import Workload, graphs


@settings(max_examples=60, deadline=None)
@given(graphs(max_samples=300, max_rows=800), st.integers(1, 4), st.randoms(use_true_random=False))
def test_every_call_starts_once_after_all_it_waits_for_whatever_ends_first(
    work: Workload, limit: int, chance: object
) -> None:
    program = Program(fs.compile(work.graph, work.samples))
    window = [max(limit, span) for span in program.spans]
    countdown = Countdown(program, window)
    running, ended, kept = countdown.first(), set[int](), set[int]()
    started = len(running)
    while running:
        call = running.pop(chance.randrange(len(running)))  # type: ignore[attr-defined]
        links = program.links[call]
        assert ended.issuperset(links.producers)
        ended.add(call)
        kept.add(call)
        ready, released = countdown.end(links)
        assert kept.issuperset(released)
        kept.difference_update(released)
        running += ready
        started += len(ready)
        for index, numbers in enumerate(program.numbers):
            begun = [number for number in numbers if number in ended or number in running]
            oldest = next(
                (n for n in numbers if n not in ended or not ended.issuperset(program.links[n].readers)), None
            )
            assert oldest is None or not begun or max(begun) < oldest + window[index]
    assert started == len(ended) == program.plan.table.calls
    assert countdown.left == 0
    assert kept == {call for call in ended if program.links[call].is_output}
