"""Which prompts are like this one: cosine similarity of the words in them, where rare words count more."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence


class SimilarPrompts:
    """An index of ``prompts``, each a sequence of tokens, by the words in them."""

    def __init__(self, prompts: Sequence[Sequence[int]]) -> None:
        self._count = len(prompts)
        self._places: defaultdict[int, list[int]] = defaultdict(list)
        for place, prompt in enumerate(prompts):
            for word in dict.fromkeys(prompt):
                self._places[word].append(place)
        self._sizes = [self._size(prompt) for prompt in prompts]

    def nearest(self, prompt: Sequence[int], most: int) -> list[tuple[int, float]]:
        """Places of the ``most`` most similar prompts and their similarities in (0, 1], the nearest first."""
        shared: defaultdict[int, float] = defaultdict(float)
        for word in dict.fromkeys(prompt):
            for place in self._places.get(word, ()):
                shared[place] += self._weight(word)
        size = self._size(prompt)
        near = [(place, weight / (size * self._sizes[place])) for place, weight in shared.items()]
        return sorted(near, key=lambda found: (-found[1], found[0]))[:most]

    def _weight(self, word: int) -> float:
        return math.log1p(self._count / len(self._places.get(word, (word,)))) ** 2

    def _size(self, prompt: Sequence[int]) -> float:
        return math.sqrt(sum(self._weight(word) for word in dict.fromkeys(prompt)))
