"""What all comparisons run: the seed's graph, what its calls cost, and models that cost that.

Policy on 2 replicas in batches of 4; reference, value and reward on 8 replicas in batches of 2; 16 samples, rows
of 1,024 floats. Without work (the models return what they are given) only the overhead of a step is left. With
slept costs a step cannot take less than its longest chain: two policy calls, a reference call, a reward call.

Models take and return numpy arrays or torch tensors alike, and can be sent to other processes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import flowsched as fs

Rows = Any
"""A numpy array or a torch tensor of shape (rows, width)."""
Models = Mapping[str, Callable[..., Rows]]

SAMPLES, WIDTH = 16, 1_024
COSTS = {"policy": (0.1, 0.05), "reference": (0.02, 0.04), "value": (0.02, 0.04), "reward": (0.02, 0.04)}
"""Seconds a call and seconds a row."""


def seed_graph() -> fs.Graph:
    """Return the seed's graph."""
    return fs.Graph(
        "seed",
        sources=["prompts"],
        nodes=[
            fs.Node("policy", inputs=["prompts"], replicas=2, batch_size=4),
            fs.Node("reference", inputs=["policy"], replicas=8, batch_size=2),
            fs.Node("value", inputs=["policy"], replicas=8, batch_size=2),
            fs.Node("reward", inputs=["policy", "reference"], replicas=8, batch_size=2),
        ],
    )


def lower_bound() -> float:
    """Return the seconds that a step with slept costs takes at least: its longest chain of calls."""
    return 2 * cost("policy", 4) + cost("reference", 2) + cost("reward", 2)


def cost(node: str, rows: int) -> float:
    """Return the seconds that a call of a node with slept costs takes."""
    each, row = COSTS[node]
    return each + row * rows


def idle_models() -> Models:
    """Return models that do nothing."""
    return dict.fromkeys(COSTS, first)


def slept_models() -> Models:
    """Return models that sleep for what their calls cost."""
    return {name: partial(sleep, name) for name in COSTS}


def told_models() -> Models:
    """Return models that do nothing, or sleep if the first float of their input is not 0.

    Replicas that take long to start can so be measured both ways.
    """
    return {name: partial(sleep_if_told, name) for name in COSTS}


def counting_models() -> Models:
    """Return models whose results tell which of them made what of which row."""
    return {"policy": add_one, "reference": double, "value": triple, "reward": add_ten_times}


def first(batch: Rows, *_: Rows) -> Rows:
    """Return the first input as it is."""
    return batch


def sleep(node: str, batch: Rows, *_: Rows) -> Rows:
    """Return the first input after what the call costs."""
    time.sleep(cost(node, len(batch)))
    return batch


def sleep_if_told(node: str, batch: Rows, *_: Rows) -> Rows:
    """Return the first input, at once if it begins with 0, otherwise after what the call costs."""
    if batch[0, 0]:
        time.sleep(cost(node, len(batch)))
    return batch


def add_one(prompts: Rows) -> Rows:
    """Return what the counting policy makes."""
    return prompts + 1


def double(answers: Rows) -> Rows:
    """Return what the counting reference makes."""
    return answers * 2


def triple(answers: Rows) -> Rows:
    """Return what the counting value makes."""
    return answers * 3


def add_ten_times(answers: Rows, scores: Rows) -> Rows:
    """Return what the counting reward makes."""
    return answers + 10 * scores
