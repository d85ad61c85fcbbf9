"""How likely is each next word: interpolated n-gram language models over token ids.

Every model here answers one question, ``next_word(context)``: an array of probabilities over the whole
vocabulary that sums to one. They all have one shape, ``NGram``: starting from a ``base`` (uniform, or another
model), each longer context that was seen takes a share for the words seen after it and leaves the rest,

    p(word | context) = seen(word, context) + left(context) * p(word | shorter context)

and differ in the shares: ``kneser_ney``, ``witten_bell``, and ``dirichlet`` on weighted counts.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Probabilities: TypeAlias = NDArray[np.float64]
Gram: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Line:
    """One training example: ``answer`` is predicted token by token, ``context`` is what comes before it."""

    context: Sequence[int]
    answer: Sequence[int]
    weight: float = 1.0


class LanguageModel(Protocol):
    def next_word(self, context: Sequence[int]) -> Probabilities:
        """Probabilities, shape (vocabulary,), of each token coming after ``context``."""


@dataclass(frozen=True)
class Uniform:
    """Every one of ``vocabulary`` tokens is as likely as another."""

    vocabulary: int

    def next_word(self, context: Sequence[int]) -> Probabilities:  # noqa: ARG002
        return np.full(self.vocabulary, 1.0 / self.vocabulary)


@dataclass(frozen=True)
class Seen:
    """What followed one context: a share for each of ``words``, the rest ``left`` for the shorter context."""

    words: NDArray[np.intp]
    shares: Probabilities
    left: float


@dataclass(frozen=True)
class NGram:
    """``levels[i]`` maps each seen context of ``shortest + i`` tokens to what followed it."""

    base: LanguageModel
    levels: tuple[Mapping[Gram, Seen], ...]
    shortest: int = 0

    def next_word(self, context: Sequence[int]) -> Probabilities:
        """Probabilities, shape (vocabulary,), of each token coming after ``context``; they sum to one."""
        likely = self.base.next_word(context)
        for length, level in enumerate(self.levels, self.shortest):
            seen = level.get(tuple(context[len(context) - length :])) if length <= len(context) else None
            if seen is None:
                break
            likely *= seen.left
            likely[seen.words] += seen.shares
        return likely


def log_probability(model: LanguageModel, context: Sequence[int], answer: Sequence[int]) -> float:
    """The natural logarithm of the probability that ``model`` gives to ``answer`` after ``context``."""
    before, total = list(context), 0.0
    for token in answer:
        total += math.log(model.next_word(before)[token])
        before.append(token)
    return total


def kneser_ney(lines: Sequence[Line], order: int, vocabulary: int) -> NGram:
    """An interpolated Kneser-Ney model: below ``order``, a word counts once for each word seen before it.

    Each level has its own discount, n1 / (n1 + 2 n2), of n1 n-grams counted once and n2 counted twice.

    Source: Kneser and Ney, "Improved backing-off for m-gram language modeling", ICASSP 1995; interpolated as
    in Chen and Goodman, "An empirical study of smoothing techniques for language modeling", 1998.
    """
    counts = [_count(lines, length) for length in range(1, order + 1)]
    places = [Counter(gram[1:] for gram in longer) for longer in counts[1:]]
    levels: list[Mapping[Gram, Seen]] = []
    level: Mapping[Gram, float]
    for level in (*places, counts[-1]):
        once, twice = (sum(count == times for count in level.values()) for times in (1, 2))
        levels.append(_level(level, _discounted(once / (once + 2 * twice) if once else 0.5)))
    return NGram(Uniform(vocabulary), tuple(levels))


def witten_bell(lines: Sequence[Line], order: int, vocabulary: int) -> NGram:
    """An interpolated Witten-Bell model: a context leaves more, the more different words followed it.

    Source: Witten and Bell, "The zero-frequency problem", IEEE Trans. Information Theory 37(4), 1991.
    """
    counts = (_count(lines, length) for length in range(1, order + 1))
    return NGram(Uniform(vocabulary), tuple(_level(level, _by_variety) for level in counts))


def dirichlet(lines: Iterable[Line], order: int, base: LanguageModel, strength: float) -> NGram:
    """``base`` adapted to a few weighted ``lines``, against which it counts as ``strength`` sightings.

    Contexts of 1 to ``order`` - 1 tokens are adapted; the counts of ``lines`` may be fractions.

    Source: MacKay and Peto, "A hierarchical Dirichlet language model", Nat. Lang. Eng. 1(3), 1995.
    """
    examples = list(lines)
    counts = (_count(examples, length) for length in range(2, order + 1))
    return NGram(base, tuple(_level(level, _with_prior(strength)) for level in counts), shortest=1)


Shares: TypeAlias = Callable[[Probabilities], tuple[Probabilities, float]]


def _discounted(discount: float) -> Shares:
    return lambda counts: ((counts - discount) / counts.sum(), discount * len(counts) / float(counts.sum()))


def _by_variety(counts: Probabilities) -> tuple[Probabilities, float]:
    total = float(counts.sum()) + len(counts)
    return counts / total, len(counts) / total


def _with_prior(strength: float) -> Shares:
    return lambda counts: (counts / (counts.sum() + strength), strength / (float(counts.sum()) + strength))


def _count(lines: Iterable[Line], length: int) -> Mapping[Gram, float]:
    """Weights of n-grams of ``length`` tokens that end in an answer; a short context repeats its last token."""
    counts: defaultdict[Gram, float] = defaultdict(float)
    for line in lines:
        padding = [line.context[-1]] * max(0, length - 1 - len(line.context))
        tokens = [*padding, *line.context, *line.answer]
        for stop in range(len(tokens) - len(line.answer) + 1, len(tokens) + 1):
            counts[tuple(tokens[stop - length : stop])] += line.weight
    return counts


def _level(counts: Mapping[Gram, float], shares: Shares) -> dict[Gram, Seen]:
    after: defaultdict[Gram, dict[int, float]] = defaultdict(dict)
    for gram, count in counts.items():
        after[gram[:-1]][gram[-1]] = count
    return {
        context: Seen(np.array([*words], np.intp), *shares(np.array([*words.values()], np.float64)))
        for context, words in after.items()
    }
