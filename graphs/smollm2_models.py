"""The models of the SmolLM2 rollouts: what the replicas of each node run.

Each row they return depends on the row it comes from and its seed alone, so results are the same, bit for bit,
for any number of replicas and any batch size (``generation`` says how). Another processor or another torch may
round otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from dialogues import demo_module
from generation import Sampler, log_probability
from relevance import Relevance
from smollm2 import convert_smollm2, load_network, load_tokenizer, minilm_folder

if TYPE_CHECKING:
    from flowsched import Context

Batch: TypeAlias = Mapping[str, Any]

SYSTEM: Final = "You are cheerful. Answer in one short sentence."


class Policy:
    """Writes ``answers`` answers to each prompt: SmolLM2, sharpened by a temperature and a cut.

    Args:
        answers: for each prompt.
        longest: the most tokens in an answer.
        folder: of a causal language model and its tokenizer, if it is not to be SmolLM2-135M-Instruct.
    """

    def __init__(self, answers: int, longest: int = 32, folder: Path | None = None) -> None:
        folder = folder or convert_smollm2()
        self._answers = answers
        self._network = load_network(folder)
        self._tokenizer = load_tokenizer(folder)
        self._sampler = Sampler(end=self._tokenizer.eos_token_id, longest=longest)

    def __call__(self, prompts: Batch, context: Context) -> Batch:
        """From column prompt (n texts) to answer, tokens (ragged), logprob (nats) and finished, n * answers rows.

        An answer that is not finished was cut at the longest length.
        """
        rows = []
        for place, prompt in enumerate(prompts["prompt"]):
            tokens = encode_prompt(self._tokenizer, prompt)
            rng = context.rng(place)
            rows += self._sampler.answers(self._network, tokens, self._answers, rng, context.cancelled)
        return {
            "answer": [decode_answer(self._tokenizer, row.tokens) for row in rows],
            "tokens": [row.tokens for row in rows],
            "logprob": np.array([row.logprob for row in rows], np.float64),
            "finished": np.array([row.tokens[-1] == self._sampler.end for row in rows], np.bool_),
        }


class Reference:
    """Scores answers under SmolLM2 as it is, without temperature and cut.

    Args:
        folder: of a causal language model and its tokenizer, if it is not to be SmolLM2-135M-Instruct.
    """

    def __init__(self, folder: Path | None = None) -> None:
        folder = folder or convert_smollm2()
        self._network = load_network(folder)
        self._tokenizer = load_tokenizer(folder)

    def __call__(self, prompts: Batch, policy: Batch) -> Batch:
        """From columns prompt and tokens (n rows each) to logprob, shape (n,), nats."""
        scores = [
            log_probability(self._network, encode_prompt(self._tokenizer, prompt), tokens)
            for prompt, tokens in zip(prompts["prompt"], policy["tokens"], strict=True)
        ]
        return {"logprob": np.array(scores, np.float64)}


class Reward:
    """Likes answers that keep to the prompt and are cheerful: MiniLM's cosine plus VADER's sentiment.

    Args:
        folder: of an encoder and its tokenizer, if it is not to be all-MiniLM-L6-v2.
    """

    def __init__(self, folder: Path | None = None) -> None:
        folder = folder or minilm_folder()
        self._relevance = Relevance(load_network(folder, "AutoModel"), load_tokenizer(folder))
        self._sentiment = demo_module("vaderSentiment.vaderSentiment").SentimentIntensityAnalyzer()

    def __call__(self, prompts: Batch, policy: Batch) -> Batch:
        """From columns prompt and answer (n rows each) to reward, relevance and sentiment, shape (n,)."""
        pairs = zip(prompts["prompt"], policy["answer"], strict=True)
        relevance = np.array([self._relevance(*pair) for pair in pairs], np.float64)
        scores = [self._sentiment.polarity_scores(text)["compound"] for text in policy["answer"]]
        sentiment = np.array(scores, np.float64)
        return {"reward": relevance + sentiment, "relevance": relevance, "sentiment": sentiment}


def encode_prompt(tokenizer: Any, prompt: str) -> list[int]:
    """Tokens of ``prompt`` as a turn of a chat, up to where the answer begins."""
    turns = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": prompt}]
    text = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
    tokens: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return tokens


def decode_answer(tokenizer: Any, tokens: list[int]) -> str:
    """The text of an answer, on one line."""
    return " ".join(tokenizer.decode(tokens, skip_special_tokens=True).split())
