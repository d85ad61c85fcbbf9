"""What the sentiment training asks of a policy, and the small random one.

A prompt is answered alone, and shares no tensor with another: an answer depends, to the last bit, on the weights,
the prompt and the draws, and on no batch that it came in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from dialogues import ANSWER, END, Dialogue, Vocabulary

RATE = 0.03
"""Learning rate that suits weights that have learnt nothing yet."""


@dataclass(frozen=True)
class Answer:
    """An answer as text, and its tokens, the end token included where it was drawn."""

    text: str
    tokens: Sequence[int]


class Policy(Protocol):
    """A language model that can be trained."""

    @property
    def weights(self) -> Sequence[torch.nn.Parameter]:
        """Those that are trained, the same tensors all along."""

    @property
    def rate(self) -> float:
        """The learning rate that suits them."""

    def answer(self, prompt: str, rng: np.random.Generator) -> Answer:
        """Draw an answer to a prompt."""

    def logprobs(self, prompt: str, tokens: Sequence[int]) -> torch.Tensor:
        """Log-probabilities (tokens,) in nats of drawing the tokens of an answer, each after those before."""


class TinyPolicy:
    """A recurrent network over the words of some dialogues, random at first: its answers are heaps of words.

    Args:
        dialogues: whose words it knows.
        seed: of its weights.
        width: numbers that stand for a word.
        longest: the most tokens in an answer.
    """

    rate = RATE

    def __init__(
        self, dialogues: Sequence[Dialogue], seed: int = 0, width: int = 64, longest: int = 12
    ) -> None:
        torch.set_num_threads(1)  # ranks are what runs in parallel
        self._vocabulary = Vocabulary.of(dialogues)
        self._longest = longest
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self._network = _Network(len(self._vocabulary), width)
        self.weights = tuple(self._network.parameters())

    def answer(self, prompt: str, rng: np.random.Generator) -> Answer:
        draws = rng.random(self._longest)
        tokens: list[int] = []
        memory = None
        unread = self._vocabulary.encode_prompt(prompt)
        with torch.inference_mode():
            for draw in draws:
                logprobs, memory = self._network(torch.tensor(unread), memory, begins=not tokens)
                mass = logprobs[-1].double().exp().cumsum(0).numpy()
                tokens.append(int(np.searchsorted(mass, draw * mass[-1], side="right")))
                if tokens[-1] == END:
                    break
                unread = tokens[-1:]
        return Answer(self._vocabulary.decode(tokens), tokens)

    def logprobs(self, prompt: str, tokens: Sequence[int]) -> torch.Tensor:
        read = [*self._vocabulary.encode_prompt(prompt), *tokens[:-1]]
        likely, _ = self._network(torch.tensor(read), begins=True, answers=len(tokens))
        picked: torch.Tensor = likely.gather(1, torch.tensor(tokens)[:, None])[:, 0]
        return picked


class _Network(torch.nn.Module):
    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(words, width)
        self.memory = torch.nn.GRU(width, width)
        self.next_word = torch.nn.Linear(width, words)

    def forward(
        self,
        tokens: torch.Tensor,
        memory: torch.Tensor | None = None,
        *,
        begins: bool,
        answers: int = 1,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Read (n,) tokens; return (answers, words) what may follow each of the last ones, in nats, and memory.

        ``begins`` says that the first row is of an answer's first word, which is never the end.
        """
        read, memory = self.memory(self.words(tokens), memory)
        logits = self.next_word(read[-answers:])
        never = torch.zeros(logits.shape, dtype=torch.bool)
        never[:, ANSWER] = True
        never[0, END] |= begins
        return logits.masked_fill(never, -torch.inf).log_softmax(dim=1), memory


def count_weights(policy: Policy) -> int:
    """How many numbers are trained."""
    return sum(weight.numel() for weight in policy.weights)
