"""How answers are drawn from a causal language model and scored: against plain loops, on tiny networks."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers", reason="pip install transformers")

GRAPHS = Path(__file__).parents[2] / "graphs"
WORDS, END = 90, 7


@pytest.fixture
def generation(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(GRAPHS)
    return importlib.import_module("generation")


@pytest.fixture
def network() -> Iterator[Any]:
    """A network with the parts of SmolLM2 and random weights; large ones, so that it has opinions."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=WORDS,
        hidden_size=24,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        initializer_range=0.5,
    )
    yield transformers.LlamaForCausalLM(config).eval()
    torch.set_num_threads(threads)


class ConstantNetwork:
    """Finds the same words likely whatever it has read; ``asked`` are the lengths of what it was given."""

    def __init__(self, *logits: float) -> None:
        self._logits = torch.tensor(logits)
        self.asked: list[int] = []

    def __call__(self, tokens: Any, *_: Any, **__: Any) -> Any:
        self.asked.append(tokens.shape[1])
        return SimpleNamespace(logits=self._logits.expand(len(tokens), 1, -1))


def plain_logprobs(network: Any, sampler: Any, prompt: list[int], answer: list[int]) -> list[float]:
    """What the sampler gives to each token of an answer, which is read anew from the start for each."""
    found = []
    for place, token in enumerate(answer):
        with torch.no_grad():
            scores = network(torch.tensor([[*prompt, *answer[:place]]])).logits[0, -1].double().tolist()
        if place == 0:
            scores[sampler.end] = -math.inf
        kept = sorted(scores, reverse=True)[: sampler.likeliest]
        assert scores[token] >= kept[-1]
        weights = [math.exp((score - kept[0]) / sampler.temperature) for score in kept]
        found.append((scores[token] - kept[0]) / sampler.temperature - math.log(sum(weights)))
    return found


def test_log_probabilities_of_answers_are_those_of_a_plain_loop_without_memory(
    generation: ModuleType, network: Any
) -> None:
    sampler = generation.Sampler(end=END, temperature=0.6, likeliest=12, longest=9)
    for seed, prompt in enumerate(([3], [5, 9, 80, 2, 41], list(range(30, 60)))):
        answers = sampler.answers(network, prompt, 5, np.random.default_rng(seed))
        assert len({tuple(answer.tokens) for answer in answers}) > 1
        for answer in answers:
            plain = plain_logprobs(network, sampler, prompt, answer.tokens)
            assert answer.logprob == pytest.approx(sum(plain), abs=1e-4)
            assert answer.logprob < 0


def test_the_score_of_an_answer_is_the_sum_over_its_tokens_alone(
    generation: ModuleType, network: Any
) -> None:
    prompt, answer = [4, 8, 15], [16, 23, 42, END]
    with torch.no_grad():
        logprobs = network(torch.tensor([[*prompt, *answer]])).logits[0].double().log_softmax(-1)
    expected = sum(float(logprobs[len(prompt) - 1 + place, token]) for place, token in enumerate(answer))
    assert generation.log_probability(network, prompt, answer) == pytest.approx(expected, abs=1e-4)
    alone = [
        generation.log_probability(network, [*prompt, *answer[:place]], [answer[place]]) for place in range(4)
    ]
    assert sum(alone) == pytest.approx(expected, abs=1e-4)


def test_the_same_seed_draws_the_same_bits_and_another_seed_other_answers(
    generation: ModuleType, network: Any
) -> None:
    sampler = generation.Sampler(end=END)
    first, again, other = (
        sampler.answers(network, [1, 2, 3], 4, np.random.default_rng(s)) for s in (5, 5, 6)
    )
    assert first == again
    assert first != other


def test_words_are_drawn_as_often_as_temperature_and_cut_make_them_likely(generation: ModuleType) -> None:
    sampler = generation.Sampler(end=2, temperature=0.5, likeliest=3, longest=1)
    answers = sampler.answers(
        ConstantNetwork(1.0, 0.0, 2.0, 1.5, -1.0, 0.5), [0], 20_000, np.random.default_rng(0)
    )
    # Word 2 ends an answer and so does not come first; of the others the three likeliest are drawn.
    weights = {0: math.exp(2.0), 3: math.exp(3.0), 5: math.exp(1.0)}
    for word, weight in weights.items():
        likely = weight / sum(weights.values())
        drawn = [answer for answer in answers if answer.tokens == [word]]
        assert len(drawn) / 20_000 == pytest.approx(likely, abs=0.015)
        assert [answer.logprob for answer in drawn] == pytest.approx([math.log(likely)] * len(drawn))
    assert {answer.tokens[0] for answer in answers} == weights.keys()


def test_an_answer_stops_at_its_end_while_its_siblings_go_on(generation: ModuleType) -> None:
    network = ConstantNetwork(1.0, 1.0, 1.0, 1.0)
    sampler = generation.Sampler(end=3, temperature=1.0, longest=40)
    answers = sampler.answers(network, [0, 1], 30, np.random.default_rng(1))
    lengths = {len(answer.tokens) for answer in answers}
    assert min(lengths) == 2
    assert max(lengths) > 6
    for answer in answers:
        assert answer.tokens.index(3) == len(answer.tokens) - 1 > 0
        later = len(answer.tokens) - 1
        assert answer.logprob == pytest.approx(-math.log(3) - later * math.log(4))
    assert network.asked == [2] + [1] * (max(lengths) - 1)


def test_an_answer_that_does_not_end_is_cut_at_the_longest_length(generation: ModuleType) -> None:
    sampler = generation.Sampler(end=0, longest=6)
    answers = sampler.answers(ConstantNetwork(-50.0, 1.0), [1], 3, np.random.default_rng(0))
    assert [answer.tokens for answer in answers] == [[1] * 6] * 3


def test_a_cancelled_call_reads_no_further(generation: ModuleType) -> None:
    network = ConstantNetwork(0.0, 1.0, 1.0)
    sampler = generation.Sampler(end=0, longest=100)
    sampler.answers(network, [1], 2, np.random.default_rng(0), lambda: len(network.asked) >= 3)
    assert len(network.asked) == 3
