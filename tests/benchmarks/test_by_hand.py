"""The programs that flowsched is compared with do the same work and hide no error."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.by_hand.executors import ExecutorProgram
from benchmarks.by_hand.queues import QueueProgram
from benchmarks.seed_graph import EXECUTORS, FLOWSCHED, QUEUES, all_sides
from benchmarks.workload import SAMPLES

Array = NDArray[Any]


def _models() -> dict[str, Callable[..., Array]]:
    return {
        "policy": lambda prompts: prompts + 1,
        "reference": lambda answers: answers * 2,
        "value": lambda answers: answers * 3,
        "reward": lambda answers, scores: answers + 10 * scores,
    }


@pytest.fixture
def prompts() -> Array:
    return np.arange(SAMPLES * 3, dtype=np.float64).reshape(SAMPLES, 3)


def test_all_sides_return_the_same_arrays_in_the_order_of_the_prompts(prompts: Array) -> None:
    with all_sides(_models(), prompts) as sides:
        for _ in range(20):
            for name, run in sides.items():
                result = run()
                np.testing.assert_array_equal(result["value"], (prompts + 1) * 3, err_msg=name)
                np.testing.assert_array_equal(result["reward"], (prompts + 1) * 21, err_msg=name)


@pytest.mark.parametrize("side", [FLOWSCHED, EXECUTORS, QUEUES])
def test_a_side_divides_batches_so_that_every_replica_works(side: str, prompts: Array) -> None:
    worked: dict[str, list[tuple[int, int]]] = {name: [] for name in _models()}

    def model(name: str, batch: Array, *_: Array) -> Array:
        worked[name].append((len(batch), threading.get_ident()))
        return batch

    with all_sides({name: partial(model, name) for name in worked}, prompts) as sides:
        sides[side]()
    rows = {name: [rows for rows, _ in calls] for name, calls in worked.items()}
    threads = {name: len({thread for _, thread in calls}) for name, calls in worked.items()}
    assert rows == {"policy": [4] * 4, "reference": [2] * 8, "value": [2] * 8, "reward": [2] * 8}
    assert threads == {"policy": 2, "reference": 8, "value": 8, "reward": 8}


@pytest.mark.parametrize("program", [ExecutorProgram, QueueProgram])
@pytest.mark.parametrize("failing", ["policy", "reference", "value", "reward"])
def test_a_program_by_hand_raises_the_error_of_any_model_and_runs_on(
    program: type[ExecutorProgram] | type[QueueProgram], failing: str, prompts: Array
) -> None:
    broken = [True]
    sound = _models()

    def model(*batches: Array) -> Array:
        if broken[0]:
            raise ZeroDivisionError(failing)
        return sound[failing](*batches)

    with program({**sound, failing: model}) as running:
        with pytest.raises(ZeroDivisionError, match=failing):
            running.run(prompts)
        broken[0] = False
        np.testing.assert_array_equal(running.run(prompts)["reward"], (prompts + 1) * 21)
