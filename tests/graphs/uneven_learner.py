"""One step of the sentiment training on ranks that have 3, 1 and no answers; each writes what it stepped by."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).parents[2] / "graphs"))

SHARES: tuple[list[int], ...] = ([0, 1, 2], [3], [])


def rollouts(policy: Any) -> list[Any]:
    """Four answers that are worth something, of different lengths, as weights that have moved since drew them."""
    from sentiments_training import Rollout

    made = []
    for sample, (tokens, advantage) in enumerate(
        [([5, 6, 7], 1.0), ([8], -2.0), ([9, 5], 0.5), ([6] * 5, 3.0)]
    ):
        with torch.no_grad():
            logprobs = policy.logprobs("hello", tokens) + 0.1 * (sample - 1)
        made.append(Rollout(sample, "hello", tokens, logprobs, 0.0, advantage))
    return made


def make_policy(seed: int) -> Any:
    """A small policy; on ranks with other seeds it begins with other weights."""
    from dialogues import Dialogue
    from sentiments_policy import TinyPolicy

    return TinyPolicy(
        [Dialogue("hello", "one two three four five six seven eight nine ten", True)], seed, width=4
    )


def stepped(policy: Any, share: list[int], answers: list[Any]) -> dict[str, list[float]]:
    """Take a step; return the gradient and the weights, as numbers."""
    from sentiments_training import Learner

    Learner(policy).step([answers[one] for one in share])
    return {
        "gradient": torch.cat([weight.grad.flatten() for weight in policy.weights]).tolist(),
        "weights": torch.cat([weight.detach().flatten() for weight in policy.weights]).tolist(),
    }


if __name__ == "__main__":
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    said = stepped(make_policy(rank), SHARES[rank], rollouts(make_policy(0)))
    Path(sys.argv[1], f"rank-{rank}.json").write_text(json.dumps(said))
    dist.destroy_process_group()
