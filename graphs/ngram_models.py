"""The models of the n-gram rollouts: what the replicas of each node run.

Each row they return depends on the row it comes from and its seed alone, so results are the same, bit for
bit, for any number of replicas and any batch size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
from dialogues import ANSWER, END, Dialogue, Vocabulary, demo_module, read_dialogues
from ngram import Line, dirichlet, kneser_ney, log_probability, witten_bell
from numpy.typing import NDArray
from sampling import Sampler
from similar import SimilarPrompts

import flowsched as fs

Batch: TypeAlias = Mapping[str, Any]

ADAPT_TO: Final = 40
"""Answers to the most similar prompts that the policy leans on."""

BASE_STRENGTH: Final = 0.5
"""Sightings that the policy's general model counts for against those answers."""


class Policy:
    """Writes ``answers`` answers to each prompt: a trigram that leans towards answers to similar prompts."""

    def __init__(self, answers: int) -> None:
        self._answers = answers
        dialogues = read_dialogues()
        self._vocabulary = Vocabulary.of(dialogues)
        self._lines = _lines(dialogues, self._vocabulary)
        self._general = kneser_ney(self._lines, 3, len(self._vocabulary))
        self._similar = SimilarPrompts([line.context[:-1] for line in self._lines])
        marks = [token for token, form in enumerate(self._vocabulary.forms) if not form[0].isalnum()]
        self._sampler = Sampler(never=np.array([ANSWER]), never_first=np.array(marks))

    def __call__(self, prompts: Batch, context: fs.Context) -> Batch:
        """From columns prompt (n texts) to answer, tokens (ragged) and logprob (nats), n * answers rows."""
        rows = [
            row
            for place, prompt in enumerate(prompts["prompt"])
            for row in self._answer(prompt, context.rng(place))
        ]
        tokens = [row for row, _ in rows]
        return {
            "answer": [self._vocabulary.decode(row) for row in tokens],
            "tokens": tokens,
            "logprob": np.array([logprob for _, logprob in rows], np.float64),
        }

    def _answer(self, prompt: str, rng: np.random.Generator) -> list[tuple[list[int], float]]:
        before = self._vocabulary.encode_prompt(prompt)
        near = self._similar.nearest(before[:-1], ADAPT_TO)
        examples = [Line([ANSWER], self._lines[place].answer, similarity) for place, similarity in near]
        model = dirichlet(examples, 3, self._general, BASE_STRENGTH)
        return [self._sampler.answer(model, before, rng) for _ in range(self._answers)]


class Reference:
    """Scores answers under a plainer model, a Witten-Bell bigram."""

    def __init__(self) -> None:
        dialogues = read_dialogues()
        self._vocabulary = Vocabulary.of(dialogues)
        self._model = witten_bell(_lines(dialogues, self._vocabulary), 2, len(self._vocabulary))

    def __call__(self, prompts: Batch, policy: Batch) -> Batch:
        """From columns prompt and tokens (n rows each) to logprob, shape (n,), nats."""
        scores = [
            log_probability(self._model, self._vocabulary.encode_prompt(prompt), tokens)
            for prompt, tokens in zip(prompts["prompt"], policy["tokens"], strict=True)
        ]
        return {"logprob": np.array(scores, np.float64)}


class Reward:
    """Likes cheer: VADER's sentiment in [-1, 1], less half the share of repeated words, less 0.25 if cut."""

    def __init__(self) -> None:
        self._sentiment = _sentiment()

    def __call__(self, policy: Batch) -> Batch:
        """From columns answer and tokens (n rows each) to reward and sentiment, shape (n,)."""
        sentiment = np.array([self._sentiment(text) for text in policy["answer"]], np.float64)
        penalty = np.array([_penalty(tokens) for tokens in policy["tokens"]], np.float64)
        return {"reward": sentiment - penalty, "sentiment": sentiment}


class Value:
    """Guesses the sentiment of an answer from its words: ridge regression, fitted to VADER on the corpus."""

    def __init__(self, ridge: float = 1.0, least: int = 2) -> None:
        dialogues = read_dialogues()
        vocabulary, sentiment = Vocabulary.of(dialogues), _sentiment()
        texts = list(dict.fromkeys(text for d in dialogues for text in (d.answer, d.prompt)))
        present = np.zeros((len(texts), len(vocabulary)))
        for row, text in enumerate(texts):
            present[row, vocabulary.encode_answer(text)] = 1.0
        common = np.flatnonzero(present.sum(axis=0) >= least)
        scores = np.array([sentiment(text) for text in texts])
        self._weights = dict(zip(common.tolist(), _ridge(present[:, common], scores, ridge), strict=True))

    def __call__(self, policy: Batch) -> Batch:
        """From column tokens (n rows) to value, shape (n,)."""
        return {"value": np.array([self._guess(tokens) for tokens in policy["tokens"]], np.float64)}

    def _guess(self, tokens: list[int]) -> float:
        # END is in every sentence of the corpus, so its weight is the constant of the regression.
        return math.fsum(self._weights.get(token, 0.0) for token in {END, *tokens})


def _lines(dialogues: list[Dialogue], vocabulary: Vocabulary) -> list[Line]:
    return [Line(vocabulary.encode_prompt(d.prompt), vocabulary.encode_answer(d.answer)) for d in dialogues]


def _sentiment() -> Callable[[str], float]:
    analyzer = demo_module("vaderSentiment.vaderSentiment").SentimentIntensityAnalyzer()
    return lambda text: float(analyzer.polarity_scores(text)["compound"])


def _penalty(tokens: list[int]) -> float:
    repeated = 1 - len(set(tokens)) / len(tokens)
    return 0.5 * repeated + (0.0 if tokens[-1] == END else 0.25)


def _ridge(features: NDArray[np.float64], targets: NDArray[np.float64], ridge: float) -> list[float]:
    """Weights that least squares gives to ``features``, shape (rows, weights), kept small by ``ridge``."""
    normal = features.T @ features + ridge * np.eye(features.shape[1])
    weights = np.linalg.solve(normal, features.T @ targets)
    # Matrix products differ in the last bits with the threads they may use, which backends set differently.
    return [round(weight, 6) for weight in weights.tolist()]
