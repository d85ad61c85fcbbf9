"""GRPO rollouts that any laptop can run: n-gram models answer real English prompts, VADER rewards cheer.

    prompts ─ policy ─┬─ reference (reads the prompts, too) ─┐
                      ├─ reward ─────────────────────────────┼─ advantage ─ best
                      └─ value

The replicas and batch sizes divide nothing on purpose.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean
from textwrap import shorten
from time import perf_counter
from typing import Any, Final, NamedTuple

import numpy as np
import rollout_job
from dialogues import demo_module
from grpo import advantage, best
from ngram_models import Policy, Reference, Reward, Value

import flowsched as fs

ANSWERS: Final = 4
PROMPTS: Final = 100
SEED: Final = 0


def rollout_graph(answers: int) -> fs.Graph:
    """The graph for ``answers`` answers per prompt."""
    return fs.Graph(
        "rollout_ngram",
        sources=["prompts"],
        nodes=[
            fs.Node("policy", inputs=["prompts"], replicas=3, batch_size=4, expand=answers),
            fs.Node("reference", inputs=["prompts", "policy"], replicas=2, batch_size=16),
            fs.Node("reward", inputs=["policy"], replicas=4, batch_size=8),
            fs.Node("value", inputs=["policy"], replicas=2),
            fs.Node("advantage", inputs=["policy", "reference", "reward"], replicas=2, group=answers),
            fs.Node("best", inputs=["policy", "reward", "advantage"], collapse=answers),
        ],
        outputs=["policy", "reference", "reward", "value", "advantage", "best"],
    )


def rollout_models(answers: int) -> dict[str, Any]:
    """The model of each node of ``rollout_graph(answers)``."""
    return {
        "policy": partial(Policy, answers),
        "reference": Reference,
        "reward": Reward,
        "value": Value,
        "advantage": partial(advantage, answers=answers),
        "best": partial(best, answers=answers),
    }


graph = rollout_graph(ANSWERS)
models = rollout_models(ANSWERS)


def __getattr__(name: str) -> Any:
    # Only running needs the corpus; planning and explaining this file do without.
    if name == "data":
        return rollout_job.draw_prompts(PROMPTS, SEED)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def group_rollouts(prompts: Sequence[str], out: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the run made of each prompt, as plain data: lists have one entry for each answer."""
    columns = {
        "answers": out["policy"]["answer"],
        "rewards": out["reward"]["reward"].tolist(),
        "values": out["value"]["value"].tolist(),
        "logprobs": out["policy"]["logprob"].tolist(),
        "reference_logprobs": out["reference"]["logprob"].tolist(),
        "kls": out["advantage"]["kl"].tolist(),
        "advantages": out["advantage"]["advantage"].tolist(),
    }
    return rollout_job.group_rollouts(prompts, columns, out["best"])


def report(rollouts: Sequence[Mapping[str, Any]]) -> str:
    """A page to read: the best and the worst answers, and what the models make of all of them."""
    rows = [
        Judged(*row, rollout["prompt"])
        for rollout in rollouts
        for row in zip(rollout["rewards"], rollout["values"], rollout["answers"], strict=True)
    ]
    reward = np.array([row.reward for row in rows])
    value = np.array([row.value for row in rows])
    mean, best_mean = reward.mean(), fmean(rollout["best_reward"] for rollout in rollouts)
    kl = fmean(kl for rollout in rollouts for kl in rollout["kls"])
    return "\n".join(
        [
            *extremes(rows),
            "",
            f"{len(rows)} answers, mean reward {mean:+.3f}; the best of each prompt, {best_mean:+.3f}",
            f"value is {abs(reward - value).mean():.3f} off the reward, "
            f"always guessing the mean would be {abs(reward - mean).mean():.3f} off",
            f"policy is {kl:.2f} nats a token away from the reference",
        ]
    )


def extremes(rows: Sequence[Judged], shown: int = 8) -> list[str]:
    """A table of the ``shown`` best and worst of the distinct ``rows``."""
    ranked = [str(row) for row in sorted(dict.fromkeys(rows), key=lambda row: -row.reward)]
    if len(ranked) > 2 * shown:
        ranked[shown:-shown] = [f"{'...':>8}"]
    return [f"  reward   value  {'prompt':28}  answer", *ranked]


class Judged(NamedTuple):
    """One answer and what reward and value say of it; prints as one line of the page."""

    reward: float
    value: float
    answer: str
    prompt: str

    def __str__(self) -> str:
        prompt, answer = (
            shorten(text, width, placeholder=" ...") for text, width in ((self.prompt, 28), (self.answer, 76))
        )
        return f"  {self.reward:+6.2f}  {self.value:+6.2f}  {prompt:28}  {answer}"


def main(argv: Sequence[str] | None = None) -> None:
    """Run the rollouts, print the page and write one JSON line a prompt."""
    options = rollout_job.parse_options(__doc__, PROMPTS, ANSWERS, "rollouts.jsonl", argv)
    try:
        demo_module("vaderSentiment")
        data = rollout_job.draw_prompts(options.prompts, options.seed)
    except (ModuleNotFoundError, ValueError) as error:
        print(error, file=sys.stderr)
        raise SystemExit(1) from None

    started = perf_counter()
    plan = fs.compile(rollout_graph(options.answers), samples=options.prompts)
    out = fs.run(plan, rollout_models(options.answers), data, backend=options.backend, seed=options.seed)
    rollouts = group_rollouts(data["prompts"]["prompt"], out)
    rollout_job.write_rollouts(rollouts, options.output)

    print(report(rollouts))
    print(f"{rollout_job.describe_run(plan)}; {perf_counter() - started:.1f} s on {options.backend}")
    print(f"wrote {len(rollouts)} prompts with {options.answers} answers each to {options.output}")


if __name__ == "__main__":
    main()
