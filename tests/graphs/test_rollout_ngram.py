"""The main demo job: n-gram rollouts on real dialogues."""

from __future__ import annotations

import dataclasses
import importlib
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import flowsched as fs

GRAPHS = Path(__file__).parents[2] / "graphs"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Import a module of the folder of graphs, as a script in that folder does."""
    monkeypatch.syspath_prepend(GRAPHS)
    return importlib.import_module


def run_script(output: Path, *options: str) -> str:
    command = [sys.executable, str(GRAPHS / "rollout_ngram.py"), "--output", str(output), *options]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=output.parent).stdout


def read_rollouts(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_the_script_writes_every_prompt_with_all_its_answers_and_prints_a_page(tmp_path: Path) -> None:
    page = run_script(tmp_path / "out.jsonl", "--prompts", "13", "--answers", "3")
    rollouts = read_rollouts(tmp_path / "out.jsonl")
    assert len({rollout["prompt"] for rollout in rollouts}) == 13
    for rollout in rollouts:
        lists = {name: column for name, column in rollout.items() if isinstance(column, list)}
        assert {len(column) for column in lists.values()} == {3}
        assert {"answers", "rewards", "values", "advantages"} <= lists.keys()
        assert all(answer[0].isupper() or answer[0].isdigit() for answer in rollout["answers"])
        assert rollout["best"] == rollout["answers"][int(np.argmax(rollout["advantages"]))]
    assert "39 answers, mean reward" in page
    assert "policy 4 on 3" in page
    best_answer = max(pair for r in rollouts for pair in zip(r["rewards"], r["answers"], strict=True))[1]
    assert best_answer[:40] in page.splitlines()[1]


def test_the_same_seed_writes_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    for name, seed in ("first", "5"), ("again", "5"), ("other", "6"):
        run_script(tmp_path / name, "--prompts", "11", "--seed", seed)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "again").read_bytes()
    assert (tmp_path / "first").read_bytes() != (tmp_path / "other").read_bytes()


def test_replicas_and_batch_sizes_change_no_bit_of_the_result(load: Callable[[str], ModuleType]) -> None:
    job = load("rollout_ngram")
    data = load("rollout_job").draw_prompts(23, seed=3)
    alone = fs.Graph("alone", job.graph.sources, [_with(n, 1, None) for n in job.graph], job.graph.outputs)
    spread = fs.Graph("spread", job.graph.sources, [_with(n, 4, 4) for n in job.graph], job.graph.outputs)
    results = [
        job.group_rollouts(data["prompts"]["prompt"], fs.run(plan, job.models, data, seed=3))
        for plan in (fs.compile(graph, samples=23) for graph in (job.graph, alone, spread))
    ]
    assert results[0] == results[1] == results[2]


def _with(node: fs.Node, replicas: int, batch_size: int | None) -> fs.Node:
    return dataclasses.replace(node, replicas=replicas, batch_size=batch_size)


def test_advantages_of_siblings_sum_to_zero_and_rank_as_rewards_less_divergence_do(
    load: Callable[[str], ModuleType],
) -> None:
    models = load("grpo")
    rng = np.random.default_rng(0)
    kl = np.concatenate([rng.exponential(2, 8), np.full(4, 1.0)])
    rewards = np.concatenate([rng.uniform(-1, 1, 8), np.full(4, 0.25)])
    policy = {"tokens": [[2, 3, 0]] * 12, "logprob": np.full(12, -4.0)}
    found = models.advantage(policy, {"logprob": -4.0 - 3 * kl}, {"reward": rewards}, answers=4)
    np.testing.assert_allclose(found["kl"], kl)
    groups = found["advantage"].reshape(3, 4)
    np.testing.assert_allclose(groups.sum(axis=1), 0, atol=1e-9)
    np.testing.assert_allclose(groups[:2].std(axis=1), 1, atol=1e-4)
    assert not groups[2].any()
    earned = (rewards - models.KL_COEFFICIENT * kl).reshape(3, 4)
    assert (groups[:2].argsort(axis=1) == earned[:2].argsort(axis=1)).all()


def test_each_language_model_gives_probabilities_that_sum_to_one(load: Callable[[str], ModuleType]) -> None:
    ngram, dialogues, models = load("ngram"), load("dialogues"), load("ngram_models")
    corpus = dialogues.read_dialogues()
    vocabulary = dialogues.Vocabulary.of(corpus)
    lines = models._lines(corpus, vocabulary)
    general = ngram.kneser_ney(lines, 3, len(vocabulary))
    plain = ngram.witten_bell(lines, 2, len(vocabulary))
    near = [ngram.Line([dialogues.ANSWER], line.answer, 0.3) for line in lines[:40]]
    adapted = ngram.dirichlet(near, 3, general, 0.5)
    rng = np.random.default_rng(1)
    seen = [[*line.context, *line.answer[:2]] for line in lines[::41]]
    unseen = rng.integers(2, len(vocabulary), (20, 3)).tolist()
    for model in general, plain, adapted:
        for context in [[], [dialogues.ANSWER], *seen, *unseen]:
            likely = model.next_word(context)
            assert likely.shape == (len(vocabulary),)
            assert likely.min() > 0
            assert abs(likely.sum() - 1) < 1e-12


def test_smoothing_is_that_of_the_papers(load: Callable[[str], ModuleType]) -> None:
    ngram = load("ngram")
    # After token 1 came: 2, 2, 3; after 2 came 0 twice; after 3 came 0. Five tokens in all.
    lines = [ngram.Line([1], answer) for answer in ([2, 0], [2, 0], [3, 0])]
    unigram = {word: count / 9 + 3 / 9 / 5 for word, count in {0: 3, 2: 2, 3: 1}.items()}
    plain = ngram.witten_bell(lines, 2, 5).next_word([1])
    assert plain[2] == pytest.approx(2 / 5 + 2 / 5 * unigram[2])
    assert plain[4] == pytest.approx(2 / 5 * 3 / 9 / 5)
    # Kneser-Ney: two pairs came once and two twice, D = 2/6; of words, 0 came after two others, 2 and 3 after
    # one: D = 2/4.
    places = {word: (count - 0.5) / 4 + 0.5 * 3 / 4 / 5 for word, count in {0: 2, 2: 1, 3: 1}.items()}
    smoothed = ngram.kneser_ney(lines, 2, 5).next_word([1])
    assert smoothed[2] == pytest.approx((2 - 1 / 3) / 3 + 1 / 3 * 2 / 3 * places[2])
    assert smoothed[0] == pytest.approx(1 / 3 * 2 / 3 * places[0])


def test_answers_stay_inside_the_nucleus_and_repeat_no_phrase(load: Callable[[str], ModuleType]) -> None:
    ngram, sampling = load("ngram"), load("sampling")
    nothing = np.array([], np.intp)
    lines = [ngram.Line([1], [2, 3, 4] * 5 + [0])]
    looping = ngram.witten_bell(lines, 4, 6)
    sampler = sampling.Sampler(never=np.array([1]), never_first=nothing, nucleus=0.5)
    tokens, logprob = sampler.answer(looping, [1], np.random.default_rng(0))
    phrases = list(zip(tokens, tokens[1:], tokens[2:], strict=False))
    assert tokens[:3] == [2, 3, 4]
    assert len(set(phrases)) == len(phrases)
    assert 1 not in tokens
    assert logprob == pytest.approx(ngram.log_probability(looping, [1], tokens))


def test_sentences_survive_the_way_to_tokens_and_back(load: Callable[[str], ModuleType]) -> None:
    dialogues = load("dialogues")
    texts = ["I've lost about $200.00 so far today.", "I use Python, Java and C++ quite often."]
    corpus = [dialogues.Dialogue("so", text, opens=True) for text in [*texts, "Then I've used it, I say"]]
    vocabulary = dialogues.Vocabulary.of(corpus)
    for text in texts:
        assert vocabulary.decode(vocabulary.encode_answer(text)) == text
    assert vocabulary.decode(vocabulary.encode_answer("i use it")) == "I use it."
    assert vocabulary.encode_prompt("So today?!") == vocabulary.encode_prompt("SO TODAY")


def test_value_knows_more_about_rewards_than_their_mean(load: Callable[[str], ModuleType]) -> None:
    job = load("rollout_ngram")
    data = load("rollout_job").draw_prompts(40, seed=1)
    out: Mapping[str, Any] = fs.run(fs.compile(job.graph, samples=40), job.models, data, seed=1)
    reward, value = out["reward"]["reward"], out["value"]["value"]
    assert np.square(reward - value).mean() < 0.6 * reward.var()


def test_a_missing_package_is_one_sentence_that_says_how_to_install_it(
    load: Callable[[str], ModuleType],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    job = load("rollout_ngram")
    for package in "chatterbot_corpus", "vaderSentiment":
        with monkeypatch.context() as without:
            without.setitem(sys.modules, package, None)
            with pytest.raises(SystemExit) as stopped:
                job.main(["--output", str(tmp_path / "none")])
        assert stopped.value.code == 1
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert package in said
        assert 'pip install "flowsched[demo]"' in said


def test_more_prompts_than_the_corpus_has_are_refused_with_both_numbers(
    load: Callable[[str], ModuleType], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        load("rollout_ngram").main(["--prompts", "5000"])
    said = capsys.readouterr().err
    assert "5000" in said
    assert "391" in said
