"""What GRPO makes of rewards: advantages among the answers to one prompt, and the best of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import numpy as np

Batch: TypeAlias = Mapping[str, Any]

KL_COEFFICIENT: Final = 0.05
"""Reward that one nat a token away from the reference costs."""


def advantage(policy: Batch, reference: Batch, reward: Batch, *, answers: int) -> Batch:
    """GRPO's advantage: how far an answer's reward, less its KL cost, is above its siblings', in deviations.

    From columns tokens and logprob, logprob, and reward (n rows, siblings together) to kl (nats a token) and
    advantage, shape (n,). Answers that all earned the same have advantage 0.
    """
    lengths = np.array([len(tokens) for tokens in policy["tokens"]], np.float64)
    kl = (policy["logprob"] - reference["logprob"]) / lengths
    earned = reward["reward"] - KL_COEFFICIENT * kl
    above = [(group - group.mean()) / (group.std() + 1e-6) for group in earned.reshape(-1, answers)]
    return {"kl": kl, "advantage": np.concatenate(above)}


def best(policy: Batch, reward: Batch, advantage: Batch, *, answers: int) -> Batch:
    """The answer of each prompt with the highest advantage: n rows become n / answers."""
    first = range(0, len(policy["answer"]), answers)
    rows = [start + int(np.argmax(advantage["advantage"][start : start + answers])) for start in first]
    return {"answer": [policy["answer"][row] for row in rows], "reward": reward["reward"][rows]}
