"""How much two English texts are about the same: cosine of their sentence embeddings.

Texts are embedded one by one, so that an embedding does not depend on what is embedded beside it.
"""

from __future__ import annotations

from typing import Any

import torch


class Relevance:
    """The cosine of two texts' embeddings: means, over the tokens, of an encoder's last layer.

    Args:
        encoder: the encoder; all-MiniLM-L6-v2 was trained to be used like this.
        tokenizer: its tokenizer, used by no other thread.
        longest: the most tokens of a text that are read.
    """

    def __init__(self, encoder: Any, tokenizer: Any, longest: int = 256) -> None:
        self._encoder = encoder
        self._tokenizer = tokenizer
        self._longest = longest

    def __call__(self, text: str, other: str) -> float:
        """The cosine, in [-1, 1]: near 1 for texts that say the same, near 0 for unrelated ones."""
        return float(torch.cosine_similarity(self._embedding(text), self._embedding(other), dim=0))

    def _embedding(self, text: str) -> torch.Tensor:
        given = self._tokenizer(text, truncation=True, max_length=self._longest, return_tensors="pt")
        with torch.inference_mode():
            layer: torch.Tensor = self._encoder(**given).last_hidden_state
        return layer[0].double().mean(dim=0)
