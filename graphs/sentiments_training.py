"""One update of a policy by PPO on several ranks, exact whatever number of rows each rank has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import torch
import torch.distributed as dist
from sentiments_policy import Policy

CLIP: Final = 0.2
"""How far, in proportion, an update may move the probability of a token before it stops counting."""


@dataclass(frozen=True)
class Rollout:
    """An answer that is learnt from.

    Attributes:
        sample: id of the prompt.
        prompt: what was answered.
        tokens: of the answer.
        logprobs: (tokens,) nats, by the weights that drew it.
        reward: what it is worth.
        advantage: how much more than others it is worth, in their standard deviations.
    """

    sample: int
    prompt: str
    tokens: Sequence[int]
    logprobs: torch.Tensor
    reward: float
    advantage: float = 0.0

    def compared_with(self, mean: float, spread: float) -> Rollout:
        """The rollout with its advantage over rewards of this mean and standard deviation."""
        return replace(self, advantage=(self.reward - mean) / (spread + 1e-6))


class Learner:
    """Trains a policy's weights, which are those of rank 0 at first and the same on all ranks ever after.

    All ranks make it, and take each of its steps, together.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._adam = torch.optim.Adam(policy.weights, policy.rate)
        if dist.is_initialized():
            for weight in policy.weights:
                dist.broadcast(weight.data, src=0)

    def step(self, rollouts: Sequence[Rollout]) -> None:
        """Move the weights against the gradient of the mean loss over the rollouts of all ranks.

        Ranks may have different numbers of rollouts, or none: each adds its sum and its number to those of the
        others. A mean of the means of ranks would count a rollout more where there are fewer.
        """
        self._adam.zero_grad(set_to_none=False)
        for rollout in rollouts:
            self._loss(rollout).backward()  # type: ignore[no-untyped-call]
        sums = [torch.zeros_like(one) if one.grad is None else one.grad for one in self._policy.weights]
        flat = torch.cat([*(one.flatten() for one in sums), torch.tensor([float(len(rollouts))])])
        if dist.is_initialized():
            dist.all_reduce(flat)
        means = torch.split(flat[:-1] / flat[-1], [one.numel() for one in sums])
        for weight, mean in zip(self._policy.weights, means, strict=True):
            weight.grad = mean.view_as(weight)
        self._adam.step()

    def _loss(self, rollout: Rollout) -> torch.Tensor:
        ratio = (self._policy.logprobs(rollout.prompt, rollout.tokens) - rollout.logprobs).exp()
        clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
        return -torch.minimum(ratio * rollout.advantage, clipped * rollout.advantage).mean()
