"""SmolLM2 as the policy of the sentiment training: as small as a real language model comes.

As in trlX's own example, only the last layers are trained; what is below them stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from generation import Sampler
from sentiments_policy import Answer
from smollm2 import load_network, load_tokenizer
from smollm2_models import decode_answer, encode_prompt

TRAINED_LAYERS = 2
TEMPERATURE = 0.7


class SmolLM2Policy:
    """SmolLM2-135M-Instruct, whose last two layers are trained.

    Args:
        folder: of its weights and tokenizer, or those of another model built like Llama.
        longest: the most tokens in an answer.
    """

    rate = 2e-5

    def __init__(self, folder: Path, longest: int = 32) -> None:
        self._network = load_network(folder)
        self._tokenizer = load_tokenizer(folder)
        # Drawn from all tokens, so that logprobs() are of what is drawn.
        self._sampler = Sampler(
            self._tokenizer.eos_token_id, TEMPERATURE, likeliest=len(self._tokenizer), longest=longest
        )
        layers = self._network.model.layers[-TRAINED_LAYERS:]
        self.weights: Sequence[torch.nn.Parameter] = tuple(layers.requires_grad_(True).parameters())

    def answer(self, prompt: str, rng: np.random.Generator) -> Answer:
        tokens = encode_prompt(self._tokenizer, prompt)
        (drawn,) = self._sampler.answers(self._network, tokens, 1, rng)
        return Answer(decode_answer(self._tokenizer, drawn.tokens), drawn.tokens)

    def logprobs(self, prompt: str, tokens: Sequence[int]) -> torch.Tensor:
        read = torch.tensor([[*encode_prompt(self._tokenizer, prompt), *tokens[:-1]]])
        logits = self._network(read, use_cache=False, logits_to_keep=len(tokens)).logits[0]
        never = torch.zeros(logits.shape, dtype=torch.bool)
        never[0, self._sampler.end] = True
        logprobs = (logits / TEMPERATURE).masked_fill(never, -torch.inf).log_softmax(dim=1)
        picked: torch.Tensor = logprobs.gather(1, torch.tensor(tokens)[:, None])[:, 0]
        return picked
