"""The programs by hand on gloo and Ray do the same work as flowsched, by the very same messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import pytest

import flowsched as fs
from benchmarks.apart import Apart, Step
from benchmarks.by_hand import gloo
from benchmarks.workload import SAMPLES, counting_models, seed_graph


def test_gloo_by_hand_sends_the_messages_of_the_plans_programs() -> None:
    programs = fs.compile(seed_graph(), samples=SAMPLES).programs()
    home = programs.placement.home
    expected = Counter(
        (_by_hand(message.sender, home), _by_hand(message.receiver, home), message.stop - message.start)
        for message in programs.messages
    )
    sent = Counter(
        (rank, to, stop - start)
        for rank in range(gloo.POLICY, gloo.RANKS)
        for call in gloo.calls_of(rank)[1]
        for to, start, stop in call.send
    )
    sent += Counter({(gloo.DRIVER, gloo.POLICY + policy, 4): 2 for policy in range(2)})
    assert sent == expected


def test_gloo_by_hand_receives_all_that_is_sent() -> None:
    calls = {rank: gloo.calls_of(rank)[1] for rank in range(gloo.POLICY, gloo.RANKS)}
    sent = Counter((rank, to) for rank, own in calls.items() for call in own for to, _, _ in call.send)
    received = Counter(
        (sender, rank) for rank, own in calls.items() for call in own for sender in call.receive
    )
    between = {pair: count for pair, count in received.items() if pair[0] != gloo.DRIVER}
    assert {pair: count for pair, count in sent.items() if pair[1] != gloo.DRIVER} == between


def _by_hand(rank: int, home: int) -> int:
    """Return the rank by hand of a rank of the programs, whose home stands last."""
    return gloo.DRIVER if rank == home else rank + 1


@contextmanager
def bring_counting_gloo() -> Iterator[Mapping[str, Step]]:
    """Bring up the program on gloo; its step raises unless it makes what it must."""
    import torch

    prompts = torch.arange(SAMPLES * 3, dtype=torch.float32).reshape(SAMPLES, 3)
    with gloo.GlooProgram(counting_models(), 3) as program:

        def step() -> None:
            made = program.run(prompts)
            np.testing.assert_array_equal(made["value"], (prompts + 1) * 3)
            np.testing.assert_array_equal(made["reward"], (prompts + 1) * 21)

        yield {"step": step}


def test_gloo_by_hand_makes_what_the_models_make_step_after_step() -> None:
    with Apart(bring_counting_gloo) as side:
        side.timer("step")(5)


@pytest.mark.slow
def test_ray_actors_by_hand_make_what_the_models_make_step_after_step() -> None:
    from benchmarks.by_hand.ray_actors import RayActorProgram
    from benchmarks.local_ray import local_ray

    prompts = np.arange(SAMPLES * 3, dtype=np.float32).reshape(SAMPLES, 3)
    with local_ray(), RayActorProgram(counting_models()) as program:
        for _ in range(3):
            made = program.run(prompts)
            np.testing.assert_array_equal(made["value"], (prompts + 1) * 3)
            np.testing.assert_array_equal(made["reward"], (prompts + 1) * 21)
