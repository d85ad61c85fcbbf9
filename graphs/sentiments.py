"""A policy learns to be cheerful on any number of processes: evaluation and rollouts as trlX has them, exactly.

    held-out prompts ─ exact ─ answers ─ rewards ─ gather, weighted_mean     every --every steps
    prompts ─ exact ─ answers ─ rewards ─ local ─ steps of PPO               --rollouts a rank, round after round

Three loaders of ``flowsched.data`` deal all that there is to deal:

- held-out prompts, "exact": each to one rank, and none twice. Gathered, answers are in the order of the prompts,
  and their number and mean reward are those of the prompts, on 1, 3 or 4 ranks;
- prompts to learn from, "exact" too, in another order each time round;
- what a rank has answered, "local": it is that rank's own already, and never split again, whatever launches it.

Run it alone (``python graphs/sentiments.py``) or with any launcher that sets RANK and WORLD_SIZE
(``torchrun --nproc-per-node 4 graphs/sentiments.py``).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count, islice

import torch
from numpy.random import default_rng
from sentiments_job import (
    Evaluation,
    Judge,
    describe_counts,
    draw_lines,
    is_first_rank,
    launched_processes,
    make_judge,
    make_policy,
    parse_options,
    report,
    say,
    write_evaluations,
)
from sentiments_policy import Policy, count_weights
from sentiments_training import Learner, Rollout

from flowsched.data import ShardedLoader, gather, weighted_mean


def evaluate(policy: Policy, judge: Judge, loader: ShardedLoader, seed: int, step: int) -> Evaluation:
    """Answer the held-out prompts, each on one rank; its draws are its own, and the same after every step."""
    answers: list[str] = []
    for prompts in loader:
        for sample, prompt in zip(loader.ids.tolist(), prompts, strict=True):
            answers.append(policy.answer(prompt, default_rng([seed, 0, sample])).text)
    rewards = [judge(answer) for answer in answers]
    return Evaluation(
        step,
        answers=gather(answers, loader),
        rewards=gather(rewards, loader),
        counts=gather([len(answers)]),
        mean=weighted_mean(rewards),
    )


def repeat(loader: ShardedLoader) -> Iterator[tuple[int, int, str]]:
    """Yield epoch, id and text of this rank's prompts, over and over; nothing where it has none."""
    for epoch in count() if len(loader) else ():
        loader.set_epoch(epoch)
        for prompts in loader:
            for sample, prompt in zip(loader.ids.tolist(), prompts, strict=True):
                yield epoch, sample, prompt


def roll_out(
    policy: Policy, judge: Judge, prompts: Iterator[tuple[int, int, str]], most: int, seed: int
) -> list[Rollout]:
    """Answer this rank's next prompts, and compare the rewards with those of all ranks."""
    rollouts = []
    for epoch, sample, prompt in islice(prompts, most):
        answer = policy.answer(prompt, default_rng([seed, 1, epoch, sample]))
        with torch.no_grad():
            logprobs = policy.logprobs(prompt, answer.tokens)
        rollouts.append(Rollout(sample, prompt, answer.tokens, logprobs, judge(answer.text)))
    mean = weighted_mean([one.reward for one in rollouts])
    spread = weighted_mean([(one.reward - mean) ** 2 for one in rollouts]) ** 0.5
    return [one.compared_with(mean, spread) for one in rollouts]


def training_batches(
    make_rollouts: Callable[[], list[Rollout]], batch_size: int, seed: int
) -> Iterator[Sequence[Rollout]]:
    """Yield this rank's batches, round after round: as many on each rank, empty ones where it has no more."""
    for number in count():
        rollouts = make_rollouts()
        loader = ShardedLoader(rollouts, batch_size, "local", shuffle=True, seed=seed, collate_fn=list)
        loader.set_epoch(number)
        lengths = gather([len(loader)])
        say(describe_round(number + 1, rollouts, lengths))
        own = iter(loader)
        for _ in range(max(lengths)):
            yield next(own, ())


def describe_round(number: int, rollouts: Sequence[Rollout], batches: Sequence[int]) -> str:
    """What all ranks learn from in a round, in words."""
    answers = describe_counts(gather([len(rollouts)]))
    prompts = len(set(gather([rollout.sample for rollout in rollouts])))
    mean = weighted_mean([rollout.reward for rollout in rollouts])
    return (
        f"round {number}: answers {answers}, to {prompts} prompts; mean reward {mean:+.6f}; "
        f"batches per rank {' '.join(map(str, batches))}"
    )


def train(
    policy: Policy, judge: Judge, held_out: Sequence[str], prompts: Sequence[str], options: argparse.Namespace
) -> list[Evaluation]:
    """Train for ``options.steps`` steps; return the evaluations before, every so many steps, and after."""
    held_out_loader = ShardedLoader(held_out, options.batch_size, "exact")
    prompt_loader = ShardedLoader(prompts, options.batch_size, "exact", shuffle=True, seed=options.seed)
    make_rollouts = partial(roll_out, policy, judge, repeat(prompt_loader), options.rollouts, options.seed)
    batches = training_batches(make_rollouts, options.batch_size, options.seed)
    learner = Learner(policy)
    say(f"{options.policy}: {count_weights(policy):,} weights are trained on {prompt_loader.ranks} ranks")
    evaluations: list[Evaluation] = []
    for step in range(options.steps + 1):
        if step > 0:
            learner.step(next(batches))
        if step % options.every == 0 or step == options.steps:
            evaluations.append(evaluate(policy, judge, held_out_loader, options.seed, step))
            say(str(evaluations[-1]))
    return evaluations


def main(argv: Sequence[str] | None = None) -> None:
    """Train, print a page and write one JSON line a held-out prompt; rank 0 prints and writes for all."""
    options = parse_options(__doc__, argv)
    with launched_processes():
        try:
            policy, judge = make_policy(options.policy, options.seed), make_judge()
            held_out, prompts = draw_lines(options.evaluation, options.prompts, options.seed)
        except (ModuleNotFoundError, ValueError) as error:
            say(str(error), file=sys.stderr)
            raise SystemExit(1) from None
        evaluations = train(policy, judge, held_out, prompts, options)
        say(report(held_out, evaluations))
        if is_first_rank():
            write_evaluations(held_out, evaluations, options.output)
        say(f"wrote {len(held_out)} prompts with {len(evaluations)} answers each to {options.output}")


if __name__ == "__main__":
    main()
