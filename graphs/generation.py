"""How a causal language model answers a prompt, and how likely it finds an answer.

Nothing is padded, and no prompt shares a tensor with another: the answers to one prompt are generated together,
from one reading of it, and an answer is scored alone. So each number depends, to the last bit, on its own prompt,
seed and number of answers, and not on what else is in the batch.

That has a price. Four prompts padded into one tensor were generated in 0.45 of the time, twelve in 0.3 (4 answers
each, one core); but then all log-probabilities moved, by up to 1e-4 nats, and with them the odds of every draw. No
draw turned in 48 answers; one that does changes all that follows it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DynamicCache


@dataclass(frozen=True)
class Answer:
    """Tokens of an answer (the end token comes last, unless it was cut) and their log-probability in nats."""

    tokens: list[int]
    logprob: float


@dataclass(frozen=True)
class Sampler:
    """Draws answers token by token.

    Attributes:
        end: the token that ends an answer; it never comes first.
        temperature: below 1, likely tokens become likelier.
        likeliest: how many of the likeliest tokens are drawn from.
        longest: the most tokens in an answer.
    """

    end: int
    temperature: float = 0.7
    likeliest: int = 50
    longest: int = 32

    def answers(
        self,
        network: Any,
        prompt: Sequence[int],
        count: int,
        rng: np.random.Generator,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> list[Answer]:
        """Draw ``count`` answers to the tokens of ``prompt``.

        Their log-probabilities are those of the distribution that is drawn from: after temperature and cut.
        Once ``cancelled`` returns True, answers end where they are.
        """
        draws = rng.random((self.longest, count))
        tokens = np.full((self.longest, count), self.end)
        logprobs = np.zeros((self.longest, count))
        running = np.ones(count, np.bool_)
        memory = DynamicCache()
        with torch.inference_mode():
            logits = _read_on(network, torch.tensor([prompt]), memory).expand(count, -1)
            memory.batch_repeat_interleave(count)
            for place in range(self.longest):
                drawn, logprob = self._draw(logits, draws[place], first=place == 0)
                tokens[place, running], logprobs[place, running] = drawn[running], logprob[running]
                running &= drawn != self.end
                if not running.any() or cancelled():
                    break
                logits = _read_on(network, torch.from_numpy(tokens[place])[:, None], memory)
        return [
            Answer(self._ended(row.tolist()), float(total))
            for row, total in zip(tokens.T, logprobs.sum(axis=0), strict=True)
        ]

    def _draw(
        self, logits: torch.Tensor, draws: NDArray[np.float64], *, first: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """One token for each row of ``logits``, shape (rows, vocabulary), and its log-probability."""
        if first:
            logits = logits.index_fill(1, torch.tensor([self.end]), -torch.inf)
        top = torch.topk(logits.double() / self.temperature, min(self.likeliest, logits.shape[1]))
        likely = top.values.softmax(dim=1)
        place = torch.searchsorted(likely.cumsum(dim=1), torch.from_numpy(draws)[:, None], right=True)
        place = place.clamp(max=likely.shape[1] - 1)
        return top.indices.gather(1, place)[:, 0].numpy(), likely.gather(1, place)[:, 0].log().numpy()

    def _ended(self, tokens: list[int]) -> list[int]:
        return tokens[: tokens.index(self.end) + 1] if self.end in tokens else tokens


def log_probability(network: Any, prompt: Sequence[int], answer: Sequence[int]) -> float:
    """The log-probability, in nats, that ``network`` gives to the tokens of ``answer`` after ``prompt``."""
    tokens = torch.tensor([[*prompt, *answer]])
    with torch.inference_mode():
        logits = network(tokens[:, :-1], use_cache=False, logits_to_keep=len(answer)).logits[0]
        logprobs = logits.double().log_softmax(dim=1)
        return float(logprobs.gather(1, tokens[0, -len(answer) :, None]).sum())


def _read_on(network: Any, tokens: torch.Tensor, memory: DynamicCache) -> torch.Tensor:
    """Read ``tokens``, shape (rows, length), after ``memory``; return logits of the next, (rows, vocabulary)."""
    # By place, since transformers has renamed this argument: it is the fourth.
    logits: torch.Tensor = network(tokens, None, None, memory, use_cache=True, logits_to_keep=1).logits
    return logits[:, -1]
