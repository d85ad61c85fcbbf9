"""What the rollout jobs share: options, prompts, and the file of JSON lines that they write."""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dialogues import opening_lines, read_dialogues

import flowsched as fs


def parse_options(
    about: str | None, prompts: int, answers: int, output: str, argv: Sequence[str] | None
) -> argparse.Namespace:
    """Read the options of a job from the command line; the arguments are what it is about and its defaults."""
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    parser.add_argument("--prompts", type=int, default=prompts, help="prompts drawn from the corpus")
    parser.add_argument("--answers", type=int, default=answers, help="answers for each prompt")
    parser.add_argument("--output", type=Path, default=Path(output), help="file of JSON lines")
    parser.add_argument("--backend", default="threads", help="what the replicas run on")
    parser.add_argument("--seed", type=int, default=0, help="draws the prompts and the answers")
    options = parser.parse_args(argv)
    if min(options.prompts, options.answers) < 1:
        parser.error("--prompts and --answers must be at least 1")
    check_output(parser, options.output)
    return options


def check_output(parser: argparse.ArgumentParser, output: Path) -> None:
    """End the program with one sentence if writing to ``output`` would fail in the end."""
    try:
        _refuse_unwritable(output)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        parser.exit(2, f"--output {output} cannot be written: {why}\n")


def _refuse_unwritable(output: Path) -> None:
    """Raise before the rollouts what writing them would raise after."""
    file = output.resolve()
    is_new = not file.exists()
    with file.open("ab"):
        pass
    if is_new:
        file.unlink()


def draw_prompts(count: int, seed: int) -> dict[str, Any]:
    """The source of the graph: ``count`` different opening lines of the corpus, drawn by ``seed``.

    Raises:
        ModuleNotFoundError: when ``chatterbot-corpus`` is not installed.
        ValueError: when the corpus has fewer opening lines.
    """
    lines = opening_lines(read_dialogues())
    if count > len(lines):
        raise ValueError(f"--prompts {count}: the corpus opens only {len(lines)} different conversations")
    return {"prompts": {"prompt": random.Random(seed).sample(lines, count)}}


def group_rollouts(
    prompts: Sequence[str], columns: Mapping[str, Sequence[Any]], best: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """What the run made of each prompt, as plain data: lists have one entry for each answer.

    Args:
        prompts: the prompts.
        columns: one entry for each answer, the answers to one prompt together.
        best: the output of the node ``best``.
    """
    answers = len(next(iter(columns.values()))) // len(prompts)
    return [
        {"prompt": prompt, "best": best_answer, "best_reward": best_reward}
        | {name: column[place * answers : (place + 1) * answers] for name, column in columns.items()}
        for place, (prompt, best_answer, best_reward) in enumerate(
            zip(prompts, best["answer"], best["reward"].tolist(), strict=True)
        )
    ]


def write_rollouts(rollouts: Sequence[Mapping[str, Any]], output: Path) -> None:
    """Write one JSON line a prompt."""
    output.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rollouts), "utf-8")


def describe_run(plan: fs.Plan) -> str:
    """How many calls each node took on how many replicas, in one line."""
    used = {node.name: {call.replica for call in node} for node in plan}
    said = (f"{node.name} {len(node)} on {len(used[node.name])}" for node in plan)
    return f"calls on replicas: {', '.join(said)}"
