"""GRPO rollouts with a real language model, on CPU and offline: SmolLM2 answers, MiniLM and VADER reward.

    prompts ─ policy ─┬─ reference ─┐
       └──────────────┴─ reward ────┴─ advantage ─ best

Policy and reference are SmolLM2-135M-Instruct, as at the start of a training: the policy draws at temperature 0.7
from the 50 likeliest tokens, the reference scores without either, and the KL cost is for that difference. All
replicas in one process share the weights.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean
from time import perf_counter
from typing import Any, Final

import rollout_job
from grpo import advantage, best
from smollm2 import check_packages, convert_smollm2, smollm2_folder

import flowsched as fs

ANSWERS: Final = 4
PROMPTS: Final = 8
SEED: Final = 0


def rollout_graph(answers: int) -> fs.Graph:
    """The graph for ``answers`` answers per prompt."""
    return fs.Graph(
        "rollout_smollm2",
        sources=["prompts"],
        nodes=[
            fs.Node("policy", inputs=["prompts"], replicas=2, batch_size=3, expand=answers),
            fs.Node("reference", inputs=["prompts", "policy"], replicas=3, batch_size=5),
            fs.Node("reward", inputs=["prompts", "policy"], replicas=2, batch_size=8),
            fs.Node("advantage", inputs=["policy", "reference", "reward"], group=answers),
            fs.Node("best", inputs=["policy", "reward", "advantage"], collapse=answers),
        ],
        outputs=["policy", "reference", "reward", "advantage", "best"],
    )


def rollout_models(answers: int) -> dict[str, Any]:
    """The model of each node of ``rollout_graph(answers)``.

    Raises:
        ModuleNotFoundError: when a package is missing; the message is the command that installs it.
    """
    check_packages()
    from smollm2_models import Policy, Reference, Reward

    return {
        "policy": partial(Policy, answers),
        "reference": Reference,
        "reward": Reward,
        "advantage": partial(advantage, answers=answers),
        "best": partial(best, answers=answers),
    }


graph = rollout_graph(ANSWERS)


def __getattr__(name: str) -> Any:
    # Only running needs the packages; planning and explaining this file do without.
    if name == "models":
        return rollout_models(ANSWERS)
    if name == "data":
        return rollout_job.draw_prompts(PROMPTS, SEED)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def group_rollouts(prompts: Sequence[str], out: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the run made of each prompt, as plain data: lists have one entry for each answer."""
    columns = {
        "answers": out["policy"]["answer"],
        "finished": out["policy"]["finished"].tolist(),
        "rewards": out["reward"]["reward"].tolist(),
        "relevances": out["reward"]["relevance"].tolist(),
        "sentiments": out["reward"]["sentiment"].tolist(),
        "logprobs": out["policy"]["logprob"].tolist(),
        "reference_logprobs": out["reference"]["logprob"].tolist(),
        "kls": out["advantage"]["kl"].tolist(),
        "advantages": out["advantage"]["advantage"].tolist(),
    }
    return rollout_job.group_rollouts(prompts, columns, out["best"])


def report(rollouts: Sequence[Mapping[str, Any]]) -> str:
    """A page to read: every prompt with its answers, the best first."""
    rewards = [reward for rollout in rollouts for reward in rollout["rewards"]]
    cut = sum(not finished for rollout in rollouts for finished in rollout["finished"])
    best_mean = fmean(rollout["best_reward"] for rollout in rollouts)
    kl = fmean(kl for rollout in rollouts for kl in rollout["kls"])
    return "\n".join(
        [
            "  advantage  reward = relevance + sentiment  answer",
            *(line for rollout in rollouts for line in _group(rollout)),
            "",
            f"{len(rewards)} answers ({cut} of them cut), mean reward {fmean(rewards):+.3f}; "
            f"the best of each prompt, {best_mean:+.3f}",
            f"policy is {kl:.2f} nats a token away from the reference",
        ]
    )


def _group(rollout: Mapping[str, Any]) -> Iterator[str]:
    yield f"\n{rollout['prompt']}"
    names = ("advantages", "rewards", "relevances", "sentiments", "answers", "finished")
    rows = zip(*(rollout[name] for name in names), strict=True)
    for advantage_, reward, relevance, sentiment, answer, finished in sorted(rows, reverse=True):
        numbers = f"{advantage_:+11.2f}{reward:+8.2f}{relevance:+12.2f}{sentiment:+12.2f}"
        yield f"{numbers}  {answer}{'' if finished else ' ...'}"


def main(argv: Sequence[str] | None = None) -> None:
    """Run the rollouts, print the page and write one JSON line a prompt."""
    options = rollout_job.parse_options(__doc__, PROMPTS, ANSWERS, "rollouts_smollm2.jsonl", argv)
    try:
        models = rollout_models(options.answers)
        data = rollout_job.draw_prompts(options.prompts, options.seed)
    except (ModuleNotFoundError, ValueError) as error:
        print(error, file=sys.stderr)
        raise SystemExit(1) from None
    if not smollm2_folder().exists():
        print(f"converting SmolLM2 into {smollm2_folder()}: once, half a minute or more", file=sys.stderr)
        convert_smollm2()

    started = perf_counter()
    plan = fs.compile(rollout_graph(options.answers), samples=options.prompts)
    out = fs.run(plan, models, data, backend=options.backend, seed=options.seed)
    rollouts = group_rollouts(data["prompts"]["prompt"], out)
    rollout_job.write_rollouts(rollouts, options.output)

    print(report(rollouts))
    print(f"{rollout_job.describe_run(plan)}; {perf_counter() - started:.1f} s on {options.backend}")
    print(f"wrote {len(rollouts)} prompts with {options.answers} answers each to {options.output}")


if __name__ == "__main__":
    main()
