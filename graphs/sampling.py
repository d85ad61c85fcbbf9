"""How an answer is drawn from a language model: temperature, nucleus, no phrase twice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from dialogues import END
from ngram import LanguageModel, Probabilities
from numpy.typing import NDArray


@dataclass(frozen=True)
class Sampler:
    """Draws answers word by word.

    Attributes:
        never: tokens that are never drawn.
        never_first: tokens that do not open an answer.
        temperature: below 1, likely words become likelier.
        nucleus: the likeliest words that together have this probability are drawn from, no others.
        phrase: no run of this many words comes twice in an answer.
        longest: the most tokens in an answer.
    """

    never: NDArray[np.intp]
    never_first: NDArray[np.intp]
    temperature: float = 0.7
    nucleus: float = 0.85
    phrase: int = 3
    longest: int = 40

    def answer(
        self, model: LanguageModel, context: Sequence[int], rng: np.random.Generator
    ) -> tuple[list[int], float]:
        """Draw the tokens of one answer to ``context`` (``END`` comes last, unless it is cut at ``longest``).

        Returns:
            The tokens, and the log-probability that ``model`` itself gives them: before temperature and cuts.
        """
        answer: list[int] = []
        logprob = 0.0
        while len(answer) < self.longest and answer[-1:] != [END]:
            likely = model.next_word([*context, *answer])
            token = self._draw(self._allowed(likely, answer), rng)
            logprob += math.log(likely[token])
            answer.append(token)
        return answer, logprob

    def _allowed(self, likely: Probabilities, answer: list[int]) -> Probabilities:
        allowed = likely.copy()
        allowed[self.never] = 0.0
        if not answer:
            allowed[self.never_first] = 0.0
        overlap = self.phrase - 1
        tail = answer[len(answer) - overlap :]
        for start in range(len(answer) - overlap):
            if answer[start : start + overlap] == tail:
                allowed[answer[start + overlap]] = 0.0
        return allowed

    def _draw(self, weights: Probabilities, rng: np.random.Generator) -> int:
        sharp = weights ** (1 / self.temperature)
        order = np.argsort(-sharp, kind="stable")
        mass = np.cumsum(sharp[order])
        nucleus = int(np.searchsorted(mass, self.nucleus * mass[-1])) + 1
        chosen = np.searchsorted(mass[:nucleus], rng.random() * mass[nucleus - 1], side="right")
        return int(order[chosen])
